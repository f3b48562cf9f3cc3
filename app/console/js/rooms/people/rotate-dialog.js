// Rotating a key: a new one is made, the old one is disabled once all use the new one, and deleted when nobody misses it.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { useAction, useResource } from "../../resource.js";
import { callIam } from "./iam.js";
import { LastUse } from "./last-use.js";
import { SecretDialog } from "./secret-dialog.js";

const LATE_SECONDS = 90;

/** Guides through the steps. It can be left at each and taken up again: where it stands is seen by the keys. */
export function RotateDialog({ whose, owner, account, old, keys, onChange, onClose }) {
  const others = keys.filter((key) => key.AccessKeyId !== old.AccessKeyId);
  const current = keys.find((key) => key.AccessKeyId === old.AccessKeyId) ?? old;
  const [made, setMade] = useState(null);
  const [deleted, setDeleted] = useState(false);
  const [act, { busy, error }] = useAction(async (action, parameters) => {
    const result = await callIam(action, { ...whose, ...parameters }, { account });
    if (result.AccessKey) setMade({ accessKey: result.AccessKey.AccessKeyId, secretKey: result.AccessKey.SecretAccessKey });
    if (action === "DeleteAccessKey") setDeleted(true);
    onChange();
  });
  if (made) return html`<${SecretDialog} title="The new key of ${owner}" owner=${owner} credentials=${made} onClose=${() => setMade(null)} />`;
  const AccessKeyId = old.AccessKeyId;
  const step = deleted ? 4 : !others.length ? 1 : current.active ? 2 : 3;
  const steps = [
    { label: "Make a new key", text: "Both keys work from then on.", action: "Make the new key", run: () => act("CreateAccessKey", {}) },
    {
      label: "Give it to all that use the old one, then disable that",
      text: html`<p><code>${others[0]?.AccessKeyId}</code> takes its place.</p>
        A program that still uses <code>${AccessKeyId}</code> is refused from then on; it can be enabled again.
        <${OldUse} id=${AccessKeyId} account=${account} />`,
      action: "Disable the old key", run: () => act("UpdateAccessKey", { AccessKeyId, Status: "Inactive" }),
    },
    {
      label: "Delete the old key when nobody misses it", text: "Wait some days first. It cannot be brought back.", action: "Delete the old key",
      run: () => act("DeleteAccessKey", { AccessKeyId }),
      back: html`<${Button} busy=${busy} onClick=${() => act("UpdateAccessKey", { AccessKeyId, Status: "Active" })}>Somebody misses it: enable it again<//>`,
    },
  ];
  return html`
    <${Dialog} title="Rotate ${AccessKeyId}" onClose=${onClose} foot=${html`<${Button} onClick=${onClose}>${step === 4 ? "Done" : "Go on later"}<//>`}>
      <ol class="steps">
        ${steps.map((one, index) => html`
          <li key=${index} class=${index + 1 < step ? "done" : ""} aria-current=${index + 1 === step ? "step" : undefined}>
            <h3>${one.label}${index + 1 < step && html` <span class="quiet small">done</span>`}</h3>
            ${index + 1 === step && html`<div class="stack tight"><div>${one.text}</div>
              <div class="row"><${Button} kind=${index ? "danger" : "primary"} busy=${busy} onClick=${one.run}>${one.action}<//>${one.back}</div></div>`}
          </li>`)}
      </ol>
      ${step === 4 && html`<p class="note good">${AccessKeyId} is rotated.</p>`}
      <${ErrorNote} error=${error} />
    <//>`;
}

/** When the old key was last used, read again on demand: so one sees whether somebody still uses it. */
function OldUse({ id, account }) {
  const { data, error, loading, reload } = useResource((signal) => callIam("GetAccessKeyLastUsed", { AccessKeyId: id }, { signal, account }), [id]);
  if (error) return null;
  const use = data?.AccessKeyLastUsed;
  const recent = use?.LastUsedDate && Date.now() - new Date(use.LastUsedDate) < LATE_SECONDS * 1000;
  return html`<div class="row"><span>Last used: ${use ? html`<${LastUse} used=${use.LastUsedDate} service=${use.LastUsedDate && use.ServiceName} />` : "…"}
    ${recent && html` <strong>– somebody uses it right now</strong>`}</span>
    <${Button} kind="plain" icon="refresh" label="Look again (uses show after a minute)" busy=${loading} onClick=${reload} /></div>`;
}

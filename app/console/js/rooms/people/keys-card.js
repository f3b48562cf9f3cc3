// The access keys of a user or of the account: made, rotated, disabled, deleted, with their last use.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Menu } from "../../components/menu.js";
import { toast } from "../../components/toast.js";
import { Badge, Copy, Time } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { session } from "../../session.js";
import { callIam, listAll } from "./iam.js";
import { idleReason } from "./idle.js";
import { LastUse } from "./last-use.js";
import { RotateDialog } from "./rotate-dialog.js";
import { SecretDialog } from "./secret-dialog.js";

const MAX_KEYS = 2;

/** Reads the keys of a user ({ UserName }) or of the account ({}), with their last uses where the caller may see them. */
async function readKeys(whose, mayUses, options) {
  const keys = await listAll("ListAccessKeys", "AccessKeyMetadata", whose, options);
  return Promise.all(keys.map(async (key) => {
    const use = mayUses ? (await callIam("GetAccessKeyLastUsed", { AccessKeyId: key.AccessKeyId }, options)).AccessKeyLastUsed : null;
    return { ...key, active: key.Status === "Active", used: use?.LastUsedDate, service: use?.LastUsedDate && use.ServiceName };
  }));
}

/** Shows them. `whose`: { UserName } or {}; `may(operation)`; `account`: of another account, by who manages accounts. */
export function KeysCard({ whose, owner, may, account, onChange }) {
  const name = whose.UserName ?? "";
  const { data: keys, error, reload } = useResource((signal) => readKeys(whose, may("GetAccessKeyLastUsed"), { signal, account }), [name, account]);
  const [made, setMade] = useState(null);
  const [rotating, setRotating] = useState(null);
  const changed = () => {
    reload();
    onChange?.();
  };
  const [act, acting] = useAction(async (action, parameters, message) => {
    const result = await callIam(action, { ...whose, ...parameters }, { account });
    if (result.AccessKey) setMade({ accessKey: result.AccessKey.AccessKeyId, secretKey: result.AccessKey.SecretAccessKey });
    else toast(message);
    changed();
  });
  const commands = { act, rotate: setRotating, may };
  const full = keys?.length >= MAX_KEYS;
  return html`
    <section class="card stack" aria-labelledby="keys-head" aria-busy=${!(keys ?? error)}>
      <div class="row"><h2 class="grow" id="keys-head">Access keys</h2>
        ${may("CreateAccessKey") && html`<${Button} icon="plus" busy=${acting.busy} disabled=${!keys || full}
          why="There are two keys, which is the most: delete one first" onClick=${() => act("CreateAccessKey", {})}>Make key<//>`}</div>
      <${ErrorNote} error=${error} retry=${reload} /><${ErrorNote} error=${acting.error} />
      ${keys && !keys.length && html`<p class="quiet">None: ${owner} cannot send requests yet.</p>`}
      ${keys?.length > 0 && html`<ul class="lines">
        ${keys.map((key) => html`<${KeyLine} key=${key.AccessKeyId} keyRow=${key} owner=${owner} commands=${commands} />`)}</ul>`}
    </section>
    ${made && html`<${SecretDialog} title="The new key" owner=${owner} credentials=${made} onClose=${() => setMade(null)} />`}
    ${rotating && html`<${RotateDialog} whose=${whose} owner=${owner} account=${account} old=${rotating} keys=${keys} onChange=${changed} onClose=${() => setRotating(null)} />`}`;
}

function KeyLine({ keyRow: key, owner, commands }) {
  const idle = idleReason({ active: key.active, created: key.CreateDate, used: key.used });
  return html`
    <li class="row access-key">
      <div class="grow">
        <div class="row"><code>${key.AccessKeyId}</code><${Copy} text=${key.AccessKeyId} label="Copy ${key.AccessKeyId}" />
          ${key.active ? html`<${Badge} kind="good">active<//>` : html`<${Badge}>disabled<//>`}
          ${idle && html`<${Badge} kind="warn">${idle}<//>`}</div>
        <div class="small">Last used: <${LastUse} used=${key.used} service=${key.service} /> <span class="quiet">· created <${Time} value=${key.CreateDate} /></span></div>
      </div>
      <${KeyMenu} keyRow=${key} owner=${owner} ...${commands} />
    </li>`;
}

function KeyMenu({ keyRow: key, owner, act, rotate, may }) {
  const id = key.AccessKeyId;
  const disable = async () => {
    if (await confirmLoss("Disable", key, owner)) act("UpdateAccessKey", { AccessKeyId: id, Status: "Inactive" }, "The key is disabled.");
  };
  const remove = async () => {
    if (await confirmLoss("Delete", key, owner)) act("DeleteAccessKey", { AccessKeyId: id }, "The key is deleted.");
  };
  const enable = () => act("UpdateAccessKey", { AccessKeyId: id, Status: "Active" }, "The key is enabled.");
  const items = [
    key.active && ["CreateAccessKey", "UpdateAccessKey", "DeleteAccessKey"].every((one) => may(one)) && { label: "Rotate…", onClick: () => rotate(key) },
    may("UpdateAccessKey") && (key.active ? { label: "Disable…", onClick: disable } : { label: "Enable", onClick: enable }),
    may("DeleteAccessKey") && { label: "Delete…", danger: true, onClick: remove },
  ].filter(Boolean);
  return items.length > 0 && html`<${Menu} label="Actions of ${id}" items=${items} />`;
}

/** Asks before a key stops working. `verb`: Disable or Delete. */
export function confirmLoss(verb, key, owner) {
  const recent = key.used && `It was last used ${new Date(key.used).toLocaleString()}${key.service ? ` for ${key.service}` : ""}: what uses it will stop working.`;
  const own = key.AccessKeyId === session.peek().access_key;
  return confirm({
    title: `${verb} this access key?`,
    message: `Requests that ${owner} signs with ${key.AccessKeyId} are refused at once, and the sessions of the console that it opened end.`,
    details: [recent, own && "You are signed in with it.", verb === "Delete" && "It cannot be brought back; a disabled key can."].filter(Boolean),
    action: verb,
  });
}

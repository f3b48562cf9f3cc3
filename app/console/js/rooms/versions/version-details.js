// One version in detail: what it is, its protection, and its actions.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { toast } from "../../components/toast.js";
import { Badge, Bytes, Copy, Time } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { downloadUrl, startDownload } from "../objects/actions.js";
import { removeVersion, restoreVersion } from "./actions.js";
import { DeleteDialog } from "./delete-dialog.js";
import { LockDialog } from "./lock-dialog.js";
import { isRetained, loadFacts } from "./version-facts.js";
import { WhyDialog } from "./why-dialog.js";

/** Shows a version; `previous` is the next older one. `onChanged({ kept })` after a change of it, or of the list; `onCompare(other)` to compare. */
export function VersionDetails({ bucket, version, previous, onChanged, onCompare }) {
  const facts = useResource((signal) => (version.marker ? Promise.resolve(null) : loadFacts(bucket, version, signal)), [version.id]);
  const [open, setOpen] = useState("");
  const [run, { busy, error }] = useAction((work) => work());
  const shared = { bucket, version, facts: facts.data, onClose: () => setOpen("") };
  const close = (change) => {
    setOpen("");
    facts.reload();
    onChanged(change);
  };
  const restore = () => run(async () => {
    await restoreVersion(bucket, version);
    toast("A copy of this version is on top now. The older versions stay.");
    onChanged({ kept: false });
  });
  const removeMarker = () => run(async () => {
    const message = version.latest
      ? "The version below becomes the object again." : "Older versions stay as they are.";
    if (!(await confirm({ title: "Remove the delete marker?", message, action: "Remove the marker" }))) return;
    await removeVersion(bucket, version);
    toast(version.latest ? "The object is back." : "The delete marker is gone.");
    onChanged({ kept: false });
  });
  const download = () => run(async () => startDownload(await downloadUrl(bucket, version.key, version.id)));
  return html`
    <section class="card stack version-details" aria-label="The chosen version">
      <div class="row"><h2 class="grow">${version.marker ? "Delete marker" : "Version"}</h2>
        ${version.latest && html`<${Badge} kind="accent">Latest<//>`}</div>
      <${VersionList} version=${version} />
      <div class="row">
        ${version.marker
          ? html`<${Button} kind="primary" busy=${busy} onClick=${removeMarker}>Remove this marker<//>`
          : html`
            <${Button} icon="download" busy=${busy} onClick=${download}>Download<//>
            <${Button} icon="up" busy=${busy} disabled=${version.latest} why="It is the latest already" onClick=${restore}>Restore<//>
            ${previous && !previous.marker && html`<${Button} onClick=${() => onCompare(previous)}>Compare with the one before<//>`}
            <${Button} kind="danger" icon="trash" onClick=${() => setOpen("delete")}>Delete for good<//>`}
      </div>
      <${ErrorNote} error=${error} />
      ${!version.marker && html`<${Facts} facts=${facts} onLock=${() => setOpen("lock")} onWhy=${() => setOpen("why")} />`}
      ${open === "delete" && html`<${DeleteDialog} ...${shared} onDone=${() => close({ kept: false })} onWhy=${() => setOpen("why")} />`}
      ${open === "lock" && html`<${LockDialog} ...${shared} onDone=${() => close({ kept: true })} />`}
      ${open === "why" && html`<${WhyDialog} ...${shared} />`}
    </section>`;
}

function VersionList({ version }) {
  return html`
    <dl class="facts">
      <dt>Written</dt><dd><${Time} value=${version.modified} /></dd>
      ${!version.marker && html`<dt>Size</dt><dd><${Bytes} value=${version.size} /></dd>
        <dt>ETag</dt><dd class="mono">${version.etag}</dd>
        <dt>Storage class</dt><dd>${version.storageClass}</dd>`}
      ${version.owner && html`<dt>Owner</dt><dd>${version.owner}</dd>`}
      <dt>Version</dt><dd class="mono">${version.id} <${Copy} text=${version.id} label="Copy the version's id" /></dd>
    </dl>`;
}

function Facts({ facts, onLock, onWhy }) {
  const { data, error, reload } = facts;
  if (error) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  if (!data) return html`<div key="waiting" class="skeleton facts-skeleton" aria-hidden="true"></div>`;
  const groups = [["Headers", data.settings], ["Metadata", data.metadata], ["Tags", data.tags]];
  return html`
    <h3>Protection</h3>
    <div class="row">${describeLock(data.lock)}</div>
    <div class="row">
      <${Button} icon="lock" onClick=${onLock}>Retention and hold<//>
      <${Button} kind="plain" onClick=${onWhy}>Why can this not be deleted?<//>
    </div>
    ${groups.map(([title, values]) => html`<${Group} key=${title} title=${title} values=${values} />`)}`;
}

function Group({ title, values }) {
  const entries = Object.entries(values ?? {});
  if (values && !entries.length) return null;
  return html`<h3>${title}</h3>${values
    ? html`<dl class="facts">${entries.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`
    : html`<p class="quiet small">You may not read them.</p>`}`;
}

function describeLock(lock) {
  const retained = isRetained(lock);
  const none = !lock.mode && !lock.hold;
  return html`
    ${lock.mode && html`<${Badge} kind=${retained ? "warn" : ""}>${lock.mode} ${retained ? "until" : "ended"} <${Time} value=${lock.until} /><//>`}
    ${lock.hold && html`<${Badge} kind="warn">Legal hold<//>`}
    ${none && html`<span class="quiet">No retention, no legal hold.</span>`}`;
}

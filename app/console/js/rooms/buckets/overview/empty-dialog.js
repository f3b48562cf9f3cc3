// Empties a bucket, or empties and deletes it: asks for its name, says what is lost, shows progress, can be stopped.
import { html, useEffect, useRef, useState } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { Dialog } from "../../../components/dialog.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { Bytes } from "../../../components/values.js";
import { formatBytes, formatCount, formatPlural } from "../../../format.js";
import { leaveQuestion } from "../../../router.js";
import { callS3 } from "../../../s3.js";
import { emptyBucket } from "./emptying.js";

const LEAVE = "The bucket is being emptied. Leave, and stop it?";

/** `deleteToo` also deletes the bucket. `onDone(deleted)` after it, `onClose()` when it is closed before. */
export function EmptyDialog({ bucket, deleteToo, onDone, onClose }) {
  const [typed, setTyped] = useState("");
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const running = abort.current !== null;
  const start = async (event) => {
    event?.preventDefault();
    if (typed !== bucket.name || abort.current) return;
    abort.current = new AbortController();
    leaveQuestion.value = () => LEAVE;
    setError(null);
    setProgress({ removed: 0, bytes: 0, uploads: 0, failures: [], failed: 0 });
    try {
      const done = await emptyBucket({ bucket: bucket.name, signal: abort.current.signal, report: setProgress });
      if (done.failed) throw new Error(`${formatPlural(done.failed, "version")} could not be removed. The rest is gone.`);
      if (deleteToo) await callS3({ method: "DELETE", bucket: bucket.name, repeat: false });
      finish(() => onDone(deleteToo));
    } catch (failure) {
      finish(() => setError(failure.name === "AbortError" ? new Error("Stopped. What was removed before is gone; start again to go on.") : failure));
    }
  };
  const finish = (then) => {
    abort.current = null;
    leaveQuestion.value = null;
    then();
  };
  const verb = deleteToo ? "Delete" : "Empty";
  const foot = running
    ? html`<${Button} icon="pause" onClick=${() => abort.current.abort()}>Stop<//>`
    : html`<${Button} onClick=${onClose}>${progress ? "Close" : "Cancel"}<//>
      <${Button} kind="danger" type="submit" form="empty-bucket" disabled=${typed !== bucket.name} why=${`Type ${bucket.name} first`}>${progress ? "Start again" : `${verb} the bucket`}<//>`;
  return html`
    <${Dialog} title="${verb} ${bucket.name}?" onClose=${running ? () => abort.current.abort() : onClose} foot=${foot}>
      <form id="empty-bucket" class="stack" onSubmit=${start}>
        <${Losses} bucket=${bucket} deleteToo=${deleteToo} />
        <${ErrorNote} error=${error} />
        ${progress && html`<${Progress} progress=${progress} contents=${bucket.contents} running=${running} />`}
        ${!running && html`<${Field} label=${html`Type <code>${bucket.name}</code> to go on`}>
          ${(props) => html`<input ...${props} autocomplete="off" autocapitalize="none" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}<//>`}
      </form>
    <//>`;
}

function Losses({ bucket, deleteToo }) {
  const { contents } = bucket;
  const lost = contents && [
    contents.objects && formatPlural(contents.objects, "object"),
    contents.older_versions && formatPlural(contents.older_versions, "older version"),
    contents.delete_markers && formatPlural(contents.delete_markers, "delete marker"),
    contents.uploads && formatPlural(contents.uploads, "unfinished upload"),
  ].filter(Boolean);
  const nothing = lost && lost.length === 0;
  return html`
    <p>${nothing ? "The bucket is empty." : html`This removes <strong>everything in the bucket, for good</strong>${contents ? html`: ${formatBytes(contents.bytes)} in ${lost.join(", ")}.` : "."}`}
      ${deleteToo && " Its settings and its policy go too, and anybody may then take its name."}</p>
    ${!nothing && html`<p class="quiet small">Versions under retention or legal hold stay. This window does the work: keep it open. What comes into the bucket meanwhile may stay.</p>`}`;
}

function Progress({ progress, contents, running }) {
  const total = contents ? contents.objects + contents.older_versions + contents.delete_markers : 0;
  const done = progress.removed + progress.failed;
  const words = html`${formatCount(progress.removed)} removed (<${Bytes} value=${progress.bytes} />)${progress.uploads > 0 && `, ${formatPlural(progress.uploads, "upload")} aborted`}`;
  return html`
    <div class="stack tight">
      <progress max=${Math.max(total, done, 1)} value=${running ? done : Math.max(total, done, 1)} aria-label="Versions removed"></progress>
      <p role="status">${words}</p>
      ${progress.failures.length > 0 && html`<details open><summary>${formatPlural(progress.failed, "failure")}</summary>
        <ul class="small">${progress.failures.slice(0, 20).map((one) => html`<li><code>${one.key}</code> – ${one.message}</li>`)}</ul></details>`}
    </div>`;
}

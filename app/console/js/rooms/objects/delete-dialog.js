// Deletes a selection, after it said what will be lost; where versions are kept, it can be undone.
import { html, useEffect, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { Bytes } from "../../components/values.js";
import { formatCount, formatPlural } from "../../format.js";
import { deleteObjects, undoDelete } from "./actions.js";
import { gather } from "./gather.js";
import { useWork } from "./use-work.js";
import { WorkStatus } from "./work-status.js";

const MANY = 1000;

/** `chosen`: rows; `onClose(changed)`. */
export function DeleteDialog({ bucket, versioning, listing, chosen, onClose }) {
  const [objects, setObjects] = useState(chosen.some((row) => row.folder) ? null : chosen);
  const [typed, setTyped] = useState("");
  const counting = useWork();
  const work = useWork();
  useEffect(() => {
    if (!objects) counting.run(async (signal, report) => setObjects(await gather(bucket, chosen, signal, (done) => report({ done }))));
  }, []);
  const keeps = versioning === "Enabled";
  const mustType = objects && !keeps && objects.length >= MANY;
  const isReady = objects && (!mustType || typed === bucket);
  const remove = async () => {
    const result = await work.run(async (signal, report) => {
      report({ total: objects.length });
      const found = await deleteObjects(bucket, objects, { signal, onProgress: (done) => report({ done }) });
      report({ errors: found.errors });
      return found;
    });
    listing.reload();
    if (result) announce(bucket, result, listing);
    if (result && !result.errors.length) onClose(true);
  };
  const isRunning = work.state === "running";
  const foot = work.state === "done"
    ? html`<${Button} onClick=${() => onClose(true)}>Close<//>`
    : html`<${Button} onClick=${isRunning ? work.cancel : () => onClose(false)}>Cancel<//>
        <${Button} kind="danger" icon="trash" busy=${isRunning} disabled=${!isReady} why="Still counting, or the name is missing" onClick=${remove}>
          Delete ${objects ? formatCount(objects.length) : ""}<//>`;
  return html`
    <${Dialog} title="Delete" onClose=${() => (isRunning ? work.cancel() : onClose(work.state === "done"))} foot=${foot}>
      ${!objects && html`<${WorkStatus} work=${counting} label="Counted" />`}
      ${objects && work.state === "idle" && html`<${Losses} bucket=${bucket} objects=${objects} versioning=${versioning} />`}
      ${mustType && work.state === "idle" && html`<${Field} label=${html`Type <code>${bucket}</code> to go on`}>
        ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}<//>`}
      <${WorkStatus} work=${work} label="Deleted" />
    <//>`;
}

function Losses({ objects, versioning }) {
  const bytes = objects.reduce((sum, one) => sum + one.size, 0);
  const effect = {
    Enabled: "The bucket keeps versions: they are hidden behind delete markers, and you can undo this.",
    Suspended: "Versions are suspended: what was written since then is lost for good.",
    "": "The bucket keeps no versions: they are lost for good.",
  }[versioning ?? ""];
  return html`
    <p>${formatPlural(objects.length, "object")}, <${Bytes} value=${bytes} />. ${effect}</p>
    <ul class="errors">${objects.slice(0, 5).map((one) => html`<li key=${one.key}><code>${one.key}</code></li>`)}
      ${objects.length > 5 && html`<li>and ${formatCount(objects.length - 5)} more</li>`}</ul>`;
}

function announce(bucket, result, listing) {
  const markers = result.deleted.filter((one) => one.marker);
  const undo = async () => {
    try {
      const { errors } = await undoDelete(bucket, markers);
      if (errors.length) toast(`${formatPlural(errors.length, "object")} could not be brought back: ${errors[0].message}`, { kind: "bad" });
      else toast(`${formatPlural(markers.length, "object")} brought back`);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    listing.reload();
  };
  toast(`${formatPlural(result.deleted.length, "object")} deleted`, markers.length ? { action: { label: "Undo", run: undo } } : {});
}

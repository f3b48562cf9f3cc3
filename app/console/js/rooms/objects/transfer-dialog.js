// Copies, renames or moves a selection within S3: no bytes come to the browser.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { Check, Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { formatPlural } from "../../format.js";
import { copyObject, moveObject } from "./actions.js";
import { gather } from "./gather.js";
import { forEachOf, useWork } from "./use-work.js";
import { WorkStatus } from "./work-status.js";

const WIDTH = 4;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** `chosen`: rows; `onClose(changed)`. One object gets a new key, several go into a folder. */
export function TransferDialog({ bucket, prefix, versioning, listing, chosen, isMove, onClose }) {
  const isOne = chosen.length === 1 && !chosen[0].folder;
  const [target, setTarget] = useState(bucket);
  const [path, setPath] = useState(isOne ? chosen[0].key : prefix);
  const [replace, setReplace] = useState(false);
  const [typed, setTyped] = useState(false);
  const work = useWork();
  const below = isOne || !path || path.endsWith("/") ? path : `${path}/`;
  const keyOf = (key) => (isOne ? below : below + key.slice(prefix.lastIndexOf("/") + 1));
  const problem = problemOf({ chosen, bucket, target, below, isOne, prefix });
  const edit = (set, value) => {
    set(value);
    setTyped(true);
  };
  const verb = isMove ? (isOne && target === bucket ? "Rename" : "Move") : "Copy";
  const start = async () => {
    const errors = [];
    await work.run(async (signal, report) => {
      const objects = await gather(bucket, chosen, signal, (total) => report({ total }));
      report({ total: objects.length });
      let done = 0;
      await forEachOf(objects, WIDTH, signal, async ({ key }) => {
        const to = { bucket: target, key: keyOf(key) };
        try {
          if (isMove) await moveObject({ bucket, key }, to, { versioning, replace, signal });
          else await copyObject({ bucket, key }, to, { replace, signal });
        } catch (error) {
          if (error.name === "AbortError") throw error;
          errors.push({ key, message: error.message });
        }
        report({ done: (done += 1), errors: [...errors] });
      });
      if (errors.length) return;
      toast(`${formatPlural(done, "object")} ${isMove ? "moved" : "copied"} to ${target}/${below}`);
      onClose(true);
    });
    listing.reload();
  };
  const isRunning = work.state === "running";
  const close = () => (isRunning ? work.cancel() : onClose(work.state === "done"));
  const foot = work.state === "done"
    ? html`<${Button} onClick=${close}>Close<//>`
    : html`<${Button} onClick=${close}>Cancel<//><${Button} kind="primary" busy=${isRunning} disabled=${Boolean(problem)} why=${problem} onClick=${start}>${verb}<//>`;
  return html`
    <${Dialog} title="${verb} ${isOne ? chosen[0].key : formatPlural(chosen.length, "row")}" onClose=${close} foot=${foot}>
      ${work.state === "idle" && html`
        <${Field} label="Bucket">${(props) => html`<input ...${props} spellcheck=${false} value=${target} onInput=${(event) => edit(setTarget, event.target.value.trim())} />`}<//>
        <${Field} label=${isOne ? "Key" : "Folder"} problem=${typed ? problem : ""} hint=${isOne ? "Another key, or another bucket." : "Empty is the top of the bucket. Folders within the selection stay as they are."}>
          ${(props) => html`<input ...${props} spellcheck=${false} value=${path} onInput=${(event) => edit(setPath, event.target.value)} />`}<//>
        <${Check} label="Replace objects that are there" checked=${replace} onChange=${setReplace} />
        ${isMove && html`<p class="quiet small">${versioning === "" && target === bucket ? "A rename: no byte is copied." : "Each is copied, then the original is deleted."}</p>`}`}
      <${WorkStatus} work=${work} label=${isMove ? "Moved" : "Copied"} />
    <//>`;
}

function problemOf({ chosen, bucket, target, below, isOne, prefix }) {
  if (!BUCKET.test(target)) return "This is no name of a bucket.";
  if (isOne && !below) return "A key has at least one character.";
  if (new TextEncoder().encode(below).length > 1024) return "A key has at most 1024 bytes.";
  if (target !== bucket) return "";
  if (isOne) return below === chosen[0].key ? "It has this key already: change it." : "";
  if (below === prefix.replace(/[^/]*$/, "")) return "They are in this folder already: name another one.";
  if (chosen.some((row) => row.folder && below.startsWith(row.key))) return "A folder cannot go into itself.";
  return "";
}

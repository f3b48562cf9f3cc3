// The panel of uploads: progress, rate, remaining time, and what each that failed needs.
import { html, useMemo, useRef, useSignal, useState } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { VirtualList } from "../../../components/virtual-list.js";
import { formatBytes, formatCount, formatPlural, formatSeconds } from "../../../format.js";
import { fileOfHandle, isFileOf } from "./chosen-files.js";
import { cancel, pauseAll, resumeAll, retry } from "./queue.js";
import { clearDone, items, paused, rate, version } from "./queue-state.js";
import { UploadLine } from "./upload-line.js";

const LINE_PX = 56;
const FIRST = { failed: 0, exists: 1, "needs-file": 2, sending: 3, waiting: 4, done: 5 };

/** Shows the uploads of this tab, if there are any. */
export function UploadPanel() {
  const now = useSignal(version);
  const isPaused = useSignal(paused);
  const [open, setOpen] = useState(true);
  const sum = useMemo(summarize, [now]);
  const shown = useMemo(() => (open ? [...items.values()].sort((one, other) => FIRST[one.state] - FIRST[other.state]) : []), [now, open]);
  if (!items.size) return null;
  const left = sum.waiting + sum.sending;
  return html`
    <section class="upload-panel card stack tight" aria-label="Uploads">
      <div class="row">
        <h2 class="grow">${title(sum, isPaused)}</h2>
        ${left > 0 && (isPaused
          ? html`<${Button} icon="play" onClick=${resumeAll}>Go on<//>`
          : html`<${Button} icon="pause" onClick=${pauseAll}>Pause<//>`)}
        ${sum.done > 0 && !left && html`<${Button} onClick=${clearDone}>Clear<//>`}
        <${Button} kind="plain" label=${open ? "Fold the list" : "Unfold the list"} aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? "Hide" : "Show"}<//>
      </div>
      <progress aria-label="All uploads" max=${sum.bytes || 1} value=${sum.bytes ? sum.sent : 0}></progress>
      <p class="small quiet">${formatBytes(sum.sent)} of ${formatBytes(sum.bytes)}${left > 0 && !isPaused ? speed(sum) : ""}</p>
      <${Bulk} sum=${sum} />
      ${open && html`<${VirtualList} count=${shown.length} lineHeight=${LINE_PX} label="Uploads" columns=${2}
        renderLine=${(index) => shown[index] && html`<${UploadLine} item=${shown[index]} version=${now} />`} />`}
    </section>`;
}

function summarize() {
  const sum = { waiting: 0, sending: 0, done: 0, failed: 0, exists: 0, "needs-file": 0, bytes: 0, sent: 0 };
  for (const item of items.values()) {
    sum[item.state] += 1;
    sum.bytes += item.size;
    sum.sent += item.sent;
  }
  return sum;
}

function title(sum, isPaused) {
  const left = sum.waiting + sum.sending;
  if (left) return `${isPaused ? "Paused" : "Uploading"}: ${formatCount(sum.done)} of ${formatPlural(items.size, "file")}`;
  const open = sum.failed + sum.exists + sum["needs-file"];
  return open ? `${formatPlural(open, "upload")} to look at` : `${formatPlural(sum.done, "file")} uploaded`;
}

function speed(sum) {
  const perSecond = rate.bytesPerSecond;
  if (!perSecond) return "";
  return ` · ${formatBytes(perSecond)}/s · ${formatSeconds(Math.ceil((sum.bytes - sum.sent) / perSecond))} left`;
}

/** What can be done for all that are in one state. */
function Bulk({ sum }) {
  const input = useRef(null);
  const folder = useRef(null);
  const of = (state) => [...items.values()].filter((item) => item.state === state);
  const match = (event) => {
    const files = [...event.target.files];
    for (const item of of("needs-file")) {
      const file = files.find((one) => isFileOf(item, one));
      if (file) retry(item, { file });
    }
    event.target.value = "";
  };
  const byHandle = async () => {
    for (const item of of("needs-file")) {
      const file = item.handle && (await fileOfHandle(item));
      if (file && file.size === item.size && file.lastModified === item.modified) retry(item, { file });
    }
  };
  const lacking = of("needs-file");
  return html`<div class="row">
    ${sum.failed > 0 && html`<${Button} icon="refresh" onClick=${() => of("failed").forEach((item) => retry(item))}>Try ${formatCount(sum.failed)} again<//>`}
    ${sum.exists > 0 && html`<${Button} kind="danger" onClick=${() => of("exists").forEach((item) => retry(item, { replace: true }))}>Replace ${formatCount(sum.exists)}<//>
      <${Button} onClick=${() => of("exists").forEach(cancel)}>Skip ${formatCount(sum.exists)}<//>`}
    ${lacking.length > 0 && html`
      <span class="small">${formatPlural(lacking.length, "upload")} interrupted: choose the same files again to go on.</span>
      ${lacking.some((item) => item.handle) && html`<${Button} kind="primary" onClick=${byHandle}>Go on<//>`}
      <${Button} onClick=${() => input.current.click()}>Choose files<//><${Button} onClick=${() => folder.current.click()}>Choose a folder<//>
      <${Button} kind="danger" onClick=${() => lacking.forEach(cancel)}>Give up ${formatCount(lacking.length)}<//>`}
    <input ref=${input} type="file" multiple hidden aria-label="Files to go on with" onChange=${match} />
    <input ref=${folder} type="file" webkitdirectory hidden aria-label="Folder to go on with" onChange=${match} />
  </div>`;
}

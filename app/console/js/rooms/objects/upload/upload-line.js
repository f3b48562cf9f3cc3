// One upload in the panel.
import { html } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { formatBytes } from "../../../format.js";
import { cancel, retry } from "./queue.js";

const TEXTS = {
  waiting: "Waits", done: "Done", exists: "There is an object of this name already",
  "needs-file": "Interrupted: choose the file again",
};

/** Shows an item of the queue with its next step. */
export function UploadLine({ item }) {
  return html`
    <div role="gridcell" class="upload-name">
      <div class="cut" title=${`${item.bucket}/${item.key}`}>${item.key}</div>
      <div class="cut small ${item.state === "failed" ? "problem" : "quiet"}">${textOf(item)}</div>
      ${item.state === "sending" && html`<progress aria-label=${item.key} max=${item.size || 1} value=${item.sent}></progress>`}
    </div>
    <div role="gridcell" class="row nowrap">
      ${item.state === "failed" && html`<${Button} kind="plain" icon="refresh" label="Try ${item.key} again" onClick=${() => retry(item)} />`}
      ${item.state === "exists" && html`<${Button} kind="danger" onClick=${() => retry(item, { replace: true })}>Replace<//>`}
      ${item.state !== "done" && html`<${Button} kind="plain" icon="close" label="Cancel ${item.key}" onClick=${() => cancel(item)} />`}
    </div>`;
}

function textOf(item) {
  if (item.state === "failed") return `${item.error.message}${item.error.requestId ? ` (request ${item.error.requestId})` : ""}`;
  if (item.state === "sending") return item.note || `${formatBytes(item.sent)} of ${formatBytes(item.size)}`;
  if (item.state === "needs-file" && item.error) return item.error.message;
  return `${TEXTS[item.state]} · ${formatBytes(item.size)}`;
}

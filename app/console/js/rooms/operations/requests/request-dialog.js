// One request: its facts, and its phases as a bar.
import { classes, html } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { Dialog } from "../../../components/dialog.js";
import { Bytes, Copy, Time } from "../../../components/values.js";
import { pathTo } from "../../../router.js";
import { kindOf } from "./request-list.js";
import { Phases } from "./phases.js";

/** Shows a request; `onFilter(name, value)` narrows the list to requests like it. */
export function RequestDialog({ request, onClose, onFilter }) {
  const narrow = (name, value) => {
    onFilter(name, value);
    onClose();
  };
  const foot = html`
    ${request.bucket && html`<${Button} onClick=${() => narrow("bucket", request.bucket)}>Only this bucket<//>`}
    ${request.access_key && html`<${Button} onClick=${() => narrow("principal", request.principal || request.access_key)}>Only this caller<//>`}
    <${Button} onClick=${() => narrow("operation", request.operation)}>Only this operation<//>`;
  return html`
    <${Dialog} title=${`${request.method || "Request"} ${request.operation}`} wide onClose=${onClose} foot=${foot}>
      <div class="row"><span class=${classes("badge", kindOf(request.status))}>${request.status}</span>
        ${request.error && html`<code>${request.error}</code>`}</div>
      <dl class="facts">
        <dt>Request</dt><dd><code>${request.request}</code> <${Copy} text=${request.request} label="Copy the request id" /></dd>
        <dt>Time</dt><dd><${Time} value=${request.time} /></dd>
        <dt>Bucket</dt><dd>${request.bucket ? html`<a href=${pathTo(["buckets", request.bucket, "objects"])}>${request.bucket}</a>` : "–"}</dd>
        <dt>Key</dt><dd class="mono">${request.key ?? "–"}</dd>
        <dt>Caller</dt><dd>${request.principal || (request.access_key ? "–" : "anonymous")}</dd>
        <dt>Access key</dt><dd class="mono">${request.access_key ?? "–"}</dd>
        <dt>Client</dt><dd class="mono">${request.client}</dd>
        <dt>Received</dt><dd><${Bytes} value=${request.bytes_in} /></dd>
        <dt>Sent</dt><dd><${Bytes} value=${request.bytes_out} /></dd>
      </dl>
      <${Phases} total=${request.ms} phases=${request.phases} />
    <//>`;
}

// One administrative change: who, from where, what, and how it was before and after.
import { html } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { Dialog } from "../../../components/dialog.js";
import { Badge, Copy, Time } from "../../../components/values.js";
import { Diff } from "./diff.js";

const SOURCES = {
  s3: "a request to S3",
  iam: "a request to IAM",
  sts: "a request to STS",
  minio: "MinIO's admin API",
  admin: "the admin API, with the admin token",
  console: "the console",
  command: "a command on the host",
};

/** Shows an event; `onFilter(name, value)` narrows the list to events like it. */
export function EventDialog({ event, onClose, onFilter }) {
  const narrow = (name, value) => {
    onFilter(name, value);
    onClose();
  };
  const foot = html`
    ${event.principal && html`<${Button} onClick=${() => narrow("principal", event.principal)}>Only this caller<//>`}
    ${event.resource && html`<${Button} onClick=${() => narrow("resource", event.resource)}>Only this resource<//>`}
    <${Button} onClick=${() => narrow("action", event.action)}>Only this action<//>`;
  const changed = event.before !== null || event.after !== null;
  return html`
    <${Dialog} title=${event.action} wide onClose=${onClose} foot=${foot}>
      <div class="row"><${Badge} kind=${event.outcome === "Success" ? "good" : "bad"}>${event.outcome}<//><${Time} value=${event.time} /></div>
      <dl class="facts">
        <dt>Who</dt><dd>${event.principal || "nobody known"}</dd>
        <dt>Access key</dt><dd class="mono">${event.access_key || "–"}</dd>
        <dt>From</dt><dd class="mono">${event.address || "–"}</dd>
        <dt>By</dt><dd>${SOURCES[event.source] ?? event.source}</dd>
        <dt>Resource</dt><dd class="mono">${event.resource || "–"}</dd>
        <dt>Request</dt><dd>${event.request_id ? html`<code>${event.request_id}</code> <${Copy} text=${event.request_id} label="Copy the request id" />` : "–"}</dd>
      </dl>
      ${changed ? html`<${Diff} before=${event.before} after=${event.after} />` : html`<p class="quiet">No state is recorded for this change.</p>`}
    <//>`;
}

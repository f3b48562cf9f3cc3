// What lifecycle rules would do at the next run: the stored ones, or a draft.
import { callApi } from "../../api.js";
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Badge, Bytes, Time } from "../../components/values.js";
import { formatCount, formatPlural } from "../../format.js";
import { useResource } from "../../resource.js";

const KINDS = {
  expire: "bad", noncurrent: "bad", marker: "warn", upload: "warn", transition: "accent", "noncurrent-transition": "accent",
};
const AHEAD = [[0, "the next run"], [1, "a day later"], [7, "a week later"], [30, "30 days later"], [90, "90 days later"], [365, "a year later"]];

/** The preview above another page. `draft` is the XML of the rules, null for the stored ones; `minimum` as in its header. */
export function LifecyclePreviewDialog({ bucket, draft = null, minimum = null, onClose }) {
  return html`<${Dialog} title="What would go" onClose=${onClose} wide><${LifecyclePreview} bucket=${bucket} draft=${draft} minimum=${minimum} /><//>`;
}

/** The preview itself. */
export function LifecyclePreview({ bucket, draft = null, minimum = null }) {
  const [ahead, setAhead] = useState(0);
  const { data, error, loading, reload } = useResource((signal) => callApi("POST", `buckets/${encodeURIComponent(bucket)}/lifecycle/preview`, {
    body: { draft, minimum, days_ahead: ahead }, signal,
  }), [bucket, draft, minimum, ahead]);
  return html`
    <div class="stack" aria-busy=${String(loading)}>
      <${Field} label="At" hint="As if nothing else happened until then. Nothing is changed by looking.">
        ${(control) => html`<select ...${control} value=${String(ahead)} onChange=${(event) => setAhead(Number(event.target.value))}>
          ${AHEAD.map(([days, label]) => html`<option key=${days} value=${String(days)}>${label}</option>`)}</select>`}<//>
      <${ErrorNote} error=${error} retry=${reload} />
      ${!data && loading && html`<p class="quiet" role="status">Looking through the bucket, for at most 5 seconds…</p>`}
      ${data && html`<${Found} found=${data} />`}
    </div>`;
}

function Found({ found }) {
  const nothing = found.rules.every((rule) => rule.due.length === 0);
  return html`
    <p role="status">At <${Time} value=${found.at} />, after a look at ${formatPlural(found.looked_at, "version and upload", "versions and uploads")}:
      ${nothing ? " nothing would go." : ""}</p>
    ${found.stopped && html`<p class="note warn">The preview stopped at <code>${found.stopped_at}</code>, by its limit of ${found.stopped === "time" ? "time" : "rows"}:
      there may be more than is counted here.</p>`}
    ${found.locked > 0 && html`<p class="note">${formatPlural(found.locked, "version")} would be due, but object lock keeps ${found.locked === 1 ? "it" : "them"}.</p>`}
    ${found.notes.map((note) => html`<p class="note warn" key=${note}>${note}</p>`)}
    ${found.rules.map((rule) => html`<${Rule} key=${rule.id} rule=${rule} permanent=${found.permanent} />`)}`;
}

function Rule({ rule, permanent }) {
  return html`
    <section class="card stack tight">
      <div class="row"><h3 class="grow cut">${rule.id}</h3>${!rule.enabled && html`<${Badge}>Disabled<//>`}
        ${rule.prefix && html`<code class="cut">${rule.prefix}</code>`}</div>
      ${rule.due.length === 0 && html`<p class="quiet">Nothing is due.</p>`}
      ${rule.due.map((due) => html`<${Due} key=${due.kind + due.storage_class} due=${due} permanent=${permanent} />`)}
    </section>`;
}

function Due({ due, permanent }) {
  const hidden = due.kind === "expire" && !permanent;
  const [shown, setShown] = useState(false);
  return html`
    <div class="row">
      <${Badge} kind=${hidden ? "warn" : KINDS[due.kind]}>${formatCount(due.count)}<//>
      <span class="grow">${describe(due, hidden)}${due.bytes !== null && html`, <${Bytes} value=${due.bytes} />`}</span>
      <${Button} aria-expanded=${String(shown)} onClick=${() => setShown(!shown)}>${shown ? "Hide keys" : "Show keys"}<//>
    </div>
    ${shown && html`<div class="scroll"><table>
      <caption class="screen-reader">The first ${due.keys.length} of ${due.count}</caption>
      <thead><tr><th scope="col">Key</th><th scope="col" class="wide-only">${due.kind === "upload" ? "Upload" : "Version"}</th><th scope="col" class="number">Size</th></tr></thead>
      <tbody>${due.keys.map((one) => html`<tr key=${one.key + one.version_id}><td>${one.key}</td><td class="wide-only mono small">${one.version_id}</td>
        <td class="number"><${Bytes} value=${one.size} /></td></tr>`)}</tbody></table></div>
      ${due.count > due.keys.length && html`<p class="quiet small">The first ${due.keys.length} of ${formatCount(due.count)}.</p>`}`}`;
}

function describe(due, hidden) {
  const one = due.count === 1;
  if (due.kind === "expire" && hidden) return one ? "object is hidden behind a delete marker" : "objects are hidden behind delete markers";
  if (due.kind === "expire") return one ? "object is deleted for good" : "objects are deleted for good";
  if (due.kind === "noncurrent") return one ? "noncurrent version is deleted for good" : "noncurrent versions are deleted for good";
  if (due.kind === "marker") return one ? "delete marker without versions goes" : "delete markers without versions go";
  if (due.kind === "upload") return one ? "unfinished upload is aborted" : "unfinished uploads are aborted";
  const what = due.kind === "transition" ? "object" : "noncurrent version";
  return `${what}${one ? " moves" : "s move"} to ${due.storage_class}`;
}

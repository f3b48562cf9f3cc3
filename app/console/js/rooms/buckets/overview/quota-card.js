// The quota of a bucket: everybody who may list it sees it, and those who may set quotas set it.
import { html, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { toast } from "../../../components/toast.js";
import { useAction } from "../../../resource.js";
import { QuotaBar } from "../list/bucket-table.js";
import { parseCount, parseSize, renderSize, renderWhole } from "./sizes.js";

/** Shows the quota, and its form. */
export function QuotaCard({ bucket, reload }) {
  const [editing, setEditing] = useState(false);
  const { quota, contents } = bucket;
  return html`
    <section class="card stack" aria-labelledby="quota"><h2 id="quota">Quota</h2>
      ${quota && contents ? html`<${QuotaBar} quota=${quota} contents=${contents} />` : html`<p>${quota ? "Counting…" : "Unlimited."} <span class="quiet">${!quota && "It may fill its store."}</span></p>`}
      ${bucket.may_set_quota && !editing && html`<div><${Button} onClick=${() => setEditing(true)}>${quota ? "Change" : "Set a quota"}<//></div>`}
      ${editing && html`<${QuotaForm} bucket=${bucket} onClose=${() => setEditing(false)} reload=${reload} />`}
    </section>`;
}

function QuotaForm({ bucket, onClose, reload }) {
  const [bytes, setBytes] = useState(renderSize(bucket.quota?.bytes));
  const [objects, setObjects] = useState(renderWhole(bucket.quota?.objects));
  const [size, count] = [parseSize(bytes), parseCount(objects)];
  const [save, { busy, error }] = useAction(async () => {
    await callApi("PUT", `buckets/${encodeURIComponent(bucket.name)}/quota`, { body: { bytes: size.value, objects: count.value } });
    toast("The quota is set.");
    onClose();
    reload();
  });
  const submit = (event) => {
    event.preventDefault();
    if (!size.problem && !count.problem) save();
  };
  return html`
    <form class="stack tight" onSubmit=${submit}>
      <${ErrorNote} error=${error} />
      <${Field} label="Bytes" hint="Such as 500 GiB or 2 TB; of all versions and open uploads. Empty: unlimited." problem=${size.problem}>
        ${(props) => html`<input ...${props} value=${bytes} onInput=${(event) => setBytes(event.target.value)} />`}<//>
      <${Field} label="Objects" hint="Versions count too. Empty: unlimited." problem=${count.problem}>
        ${(props) => html`<input ...${props} inputmode="numeric" value=${objects} onInput=${(event) => setObjects(event.target.value)} />`}<//>
      <div class="row"><${Button} kind="primary" type="submit" busy=${busy} disabled=${Boolean(size.problem || count.problem)}>Save<//><${Button} onClick=${onClose}>Cancel<//></div>
    </form>`;
}

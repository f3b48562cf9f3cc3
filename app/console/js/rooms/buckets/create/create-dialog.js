// Creates a bucket by S3: name, store, region, versions, lock.
import { html, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { Dialog } from "../../../components/dialog.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Check, Field } from "../../../components/field.js";
import { toast } from "../../../components/toast.js";
import { useAction, useResource } from "../../../resource.js";
import { navigate, pathTo } from "../../../router.js";
import { callS3, S3Error } from "../../../s3.js";
import { S3_NAMESPACE, toXml } from "../../../xml.js";
import { nameHint, nameProblem } from "./names.js";

const TAKEN = "Somebody has a bucket of this name already: names are shared by all accounts of the gateway. Choose another.";
const THERE = "There is a bucket of this name already, which you can open. Choose another name.";
const REGION = /^[A-Za-z0-9._-]{1,64}$/;

/** Asks for a new bucket, makes it and opens it. */
export function CreateDialog({ onClose }) {
  const { data: choices, error: unknown } = useResource((signal) => callApi("GET", "bucket-choices", { signal }), []);
  const [form, setForm] = useState({ name: "", store: "", region: "", versions: false, lock: false });
  const [run, { busy, error }] = useAction(() => createBucket(plain ? { ...form, versions: false, lock: false } : form, choices));
  const plain = Boolean(choices?.stores.find((store) => store.name === (form.store || defaultOf(choices)))?.plain_files);
  const problems = { name: nameProblem(form.name), region: form.region && !REGION.test(form.region) ? "Letters, digits, dots, hyphens, underscores; 64 at most." : "" };
  const ready = form.name.length >= 3 && !problems.name && !problems.region && choices;
  const change = (changes) => setForm({ ...form, ...changes });
  const submit = async (event) => {
    event.preventDefault();
    if (!ready || !(await run())) return;
    toast(`The bucket ${form.name} is there.`);
    navigate(pathTo(["buckets", form.name, "objects"]));
  };
  const foot = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="create-bucket" busy=${busy} disabled=${!ready} why="Give it a valid name first">Create<//>`;
  return html`
    <${Dialog} title="Create a bucket" onClose=${onClose} foot=${foot}>
      <form id="create-bucket" class="stack" onSubmit=${submit}>
        <${ErrorNote} error=${unknown ?? error} />
        <${Field} label="Name" hint=${nameHint(form.name)} problem=${problems.name}>
          ${(props) => html`<input ...${props} autofocus required maxlength="63" autocomplete="off" autocapitalize="none" spellcheck=${false}
            value=${form.name} onInput=${(event) => change({ name: event.target.value })} />`}<//>
        ${choices && choices.stores.length > 1 && html`<${StoreField} choices=${choices} value=${form.store} onChange=${(store) => change({ store })} />`}
        ${choices?.any_region && html`<${Field} label="Region" hint="Any name; clients sign with it. Empty: ${choices.region}." problem=${problems.region}>
          ${(props) => html`<input ...${props} placeholder=${choices.region} value=${form.region} onInput=${(event) => change({ region: event.target.value.trim() })} />`}<//>`}
        <${Options} form=${form} plain=${plain} change=${change} />
        ${choices && html`<p class="quiet small">${describeDefaults(choices, plain)}</p>`}
      </form>
    <//>`;
}

function defaultOf(choices) {
  return choices.stores.find((store) => store.default)?.name;
}

function StoreField({ choices, value, onChange }) {
  return html`
    <${Field} label="Store" hint="Where its objects lie. A bucket can be moved to another store later.">
      ${(props) => html`<select ...${props} value=${value || defaultOf(choices)} onChange=${(event) => onChange(event.target.value)}>
        ${choices.stores.map((store) => html`<option key=${store.name} value=${store.name}>
          ${store.name}${store.default ? " (default)" : ""}${store.plain_files ? " – plain files" : ""}</option>`)}
      </select>`}<//>`;
}

function Options({ form, plain, change }) {
  if (plain) return html`<p class="note">Objects on this store are plain files, which other programs may change: no versions, no object lock.</p>`;
  return html`
    <${Check} label="Keep versions" hint="Overwritten and deleted objects can be restored. They take space until a lifecycle rule removes them."
      checked=${form.versions || form.lock} disabled=${form.lock} onChange=${(versions) => change({ versions })} />
    <${Check} label="Object lock" hint="Versions can be protected from removal for a time. It keeps versions, and can never be turned off."
      checked=${form.lock} onChange=${(lock) => change({ lock })} />`;
}

function describeDefaults(choices, plain) {
  const parts = [choices.public_access_block ? "blocks public access" : "allows public policies and ACLs"];
  if (choices.encryption && !plain) parts.push(`encrypts new objects (${choices.encryption})`);
  return `A new bucket ${parts.join(" and ")}. All of it can be changed in its settings.`;
}

/** Makes the bucket. Resolves to true; throws S3Error with words about the name. */
async function createBucket(form, choices) {
  if (await isThere(form.name)) throw new S3Error(409, "BucketAlreadyOwnedByYou", THERE, "");
  const region = form.region || choices.region;
  const store = form.store && form.store !== defaultOf(choices) ? `:${form.store}` : "";
  const constraint = store || form.region ? `${region}${store}` : "";
  const body = constraint ? toXml("CreateBucketConfiguration", [["LocationConstraint", constraint]], S3_NAMESPACE) : undefined;
  const headers = form.lock ? { "x-amz-bucket-object-lock-enabled": "true" } : {};
  try {
    await callS3({ method: "PUT", bucket: form.name, headers, body, repeat: false });
  } catch (error) {
    if (error.code === "BucketAlreadyExists") error.message = TAKEN;
    if (error.code === "BucketAlreadyOwnedByYou") error.message = THERE;
    throw error;
  }
  if (form.versions && !form.lock) {
    const status = toXml("VersioningConfiguration", [["Status", "Enabled"]], S3_NAMESPACE);
    await callS3({ method: "PUT", bucket: form.name, query: { versioning: "" }, body: status });
  }
  return true;
}

/** Returns whether a bucket can be reached. In us-east-1 S3 answers 200 to a second creation, and changes nothing. */
async function isThere(bucket) {
  try {
    return (await callS3({ method: "HEAD", bucket })).ok;
  } catch (error) {
    if (error.status === 404 || error.status === 403) return false;
    throw error;
  }
}

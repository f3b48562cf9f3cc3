// The form of one inventory, or its XML where the form cannot show all of it.
import { html, useState } from "../../../../ui.js";
import { Button } from "../../../../components/button.js";
import { Dialog } from "../../../../components/dialog.js";
import { ErrorNote } from "../../../../components/error-note.js";
import { Check, Field } from "../../../../components/field.js";
import { toast } from "../../../../components/toast.js";
import { useAction } from "../../../../resource.js";
import { callS3 } from "../../../../s3.js";
import { nameProblem } from "../../create/names.js";
import { Select, TextInput, Ticks } from "../inputs.js";
import { LineEditor } from "../line-editor.js";
import { indent, xmlProblem } from "../shape.js";
import { FIELDS, ROOT, writeInventory } from "./inventory-shape.js";

const ARN = "arn:aws:s3:::";

/** `one` is what `readInventory` returns; `taken` are the ids that are there. */
export function InventoryDialog({ bucket, one, taken, onSaved, onClose }) {
  const [value, setValue] = useState(one.value);
  const [text, setText] = useState(one.shown ? null : indent(one.source));
  const problems = text === null ? problemsOf(value, one.isNew ? taken : []) : {};
  const fault = text === null ? null : xmlProblem(text, ROOT);
  const wrong = Boolean(fault) || Object.values(problems).some(Boolean);
  const [save, { busy, error }] = useAction(async () => {
    await callS3({ method: "PUT", bucket: bucket.name, query: { inventory: "", id: value.id }, body: text ?? writeInventory(value) });
    toast(`The inventory ${value.id} is saved.`);
    onSaved();
  });
  const submit = (event) => {
    event.preventDefault();
    if (!wrong) save();
  };
  const foot = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" type="submit" form="inventory" busy=${busy} disabled=${wrong}>Save<//>`;
  return html`
    <${Dialog} wide title=${one.isNew ? "Add an inventory" : `Inventory ${value.id}`} onClose=${onClose} foot=${foot}>
      <form id="inventory" class="stack" onSubmit=${submit}>
        <${ErrorNote} error=${error} />
        ${text === null ? html`<${Form} value=${value} isNew=${one.isNew} problems=${problems} change=${(changes) => setValue({ ...value, ...changes })} />`
          : html`<p class="note warn">This inventory has something that the form cannot show. Edit its XML.</p>
            <${Field} label="XML" problem=${fault?.message}>${(control) => html`<${LineEditor} control=${control} value=${text} wrongLine=${fault?.line} onInput=${setText} />`}<//>`}
      </form>
    <//>`;
}

function Form({ value, isNew, problems, change }) {
  return html`
    <div class="columns">
      <${TextInput} label="Name" value=${value.id} problem=${problems.id} readonly=${!isNew} onInput=${(id) => change({ id })} />
      <${Select} label="How often" value=${value.frequency} options=${[["Daily", "Daily"], ["Weekly", "Weekly"]]} onChange=${(frequency) => change({ frequency })} />
      <${TextInput} label="To the bucket" value=${value.bucket.replace(ARN, "")} problem=${problems.bucket} onInput=${(name) => change({ bucket: ARN + name.trim() })} />
      <${TextInput} label="Prefix there" value=${value.prefix} onInput=${(prefix) => change({ prefix: prefix || null })} />
      <${Select} label="Format" value=${value.format} options=${[["CSV", "CSV (gzip)"], ["Parquet", "Parquet (needs pyarrow)"]]} onChange=${(format) => change({ format })} />
      <${Select} label="Versions" value=${value.versions} options=${[["Current", "Current objects"], ["All", "All versions"]]} onChange=${(versions) => change({ versions })} />
      <${TextInput} label="Only keys that begin with" value=${value.filter} onInput=${(filter) => change({ filter })} />
    </div>
    <${Ticks} legend="Fields" options=${FIELDS.map((name) => [name, name])} values=${value.fields} onChange=${(fields) => change({ fields })} />
    <${Check} label="Make it" hint="Turned off, the configuration stays and nothing is delivered." checked=${value.enabled} onChange=${(enabled) => change({ enabled })} />
    <${Check} label="Encrypt the lists (SSE-S3)" checked=${value.encrypted} onChange=${(encrypted) => change({ encrypted })} />`;
}

function problemsOf(value, taken) {
  const target = value.bucket.replace(ARN, "");
  return {
    id: !/^[A-Za-z0-9_.-]{1,64}$/.test(value.id) ? "1 to 64 letters, digits, dots, hyphens or underscores." : taken.includes(value.id) ? "This name is taken." : "",
    bucket: target ? nameProblem(target) : "Name a bucket.",
  };
}

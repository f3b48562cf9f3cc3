// The page of inventories: a list, and a form for each.
import { html, useState } from "../../../../ui.js";
import { Button } from "../../../../components/button.js";
import { confirm } from "../../../../components/dialog.js";
import { Empty } from "../../../../components/page.js";
import { toast } from "../../../../components/toast.js";
import { Badge } from "../../../../components/values.js";
import { useAction, useResource } from "../../../../resource.js";
import { ErrorNote } from "../../../../components/error-note.js";
import { callS3, callS3Xml } from "../../../../s3.js";
import { childrenOf, textOf } from "../../../../xml.js";
import { BucketError } from "../../bucket-frame.js";
import { InventoryDialog } from "./inventory-dialog.js";
import { newInventory, readInventory, sourceOf } from "./inventory-shape.js";

/** Returns all configurations: [{ id, source, value, shown }]. */
export async function readInventories(bucket, signal) {
  const found = [];
  let token = null;
  do {
    const query = { inventory: "", ...(token ? { "continuation-token": token } : {}) };
    const root = await callS3Xml({ bucket, query, signal });
    found.push(...childrenOf(root, "InventoryConfiguration").map((element) => readInventory(sourceOf(element))));
    token = textOf(root, "NextContinuationToken");
  } while (token);
  return found;
}

/** Lists the inventories of a bucket. */
export function InventoryPage({ kind, bucket }) {
  const { data, error, reload } = useResource((signal) => readInventories(bucket.name, signal), [bucket.name]);
  const [editing, setEditing] = useState(null);
  const [remove, action] = useAction(async (id) => {
    const agreed = await confirm({ title: `Remove the inventory ${id}?`, message: "No more lists are made. Those that were delivered stay.", action: "Remove" });
    if (!agreed) return;
    await callS3({ method: "DELETE", bucket: bucket.name, query: { inventory: "", id } });
    toast(`The inventory ${id} is removed.`);
    reload();
  });
  if (!data) return html`<${BucketError} name=${bucket.name} error=${error} retry=${reload} />`;
  const saved = () => {
    setEditing(null);
    reload();
  };
  const add = () => setEditing({ isNew: true, value: newInventory(bucket.name), shown: true });
  return html`
    <div class="setting stack">
      <p class="quiet">${kind.about}</p>
      <${ErrorNote} error=${error ?? action.error} retry=${error ? reload : undefined} />
      ${data.length === 0 ? html`<${Empty} title="No inventories" action="Add an inventory" onAction=${add}>Name a bucket that the lists go to; its policy must let s3.amazonaws.com put objects.<//>`
        : html`<ul class="settings-list">${data.map((one) => html`<${Row} key=${one.id} one=${one} onEdit=${() => setEditing(one)} onRemove=${() => remove(one.id)} />`)}</ul>
          <div><${Button} icon="plus" onClick=${add}>Add an inventory<//></div>`}
      ${editing && html`<${InventoryDialog} bucket=${bucket} one=${editing} taken=${data.map((other) => other.id)} onSaved=${saved} onClose=${() => setEditing(null)} />`}
    </div>`;
}

function Row({ one, onEdit, onRemove }) {
  const { value } = one;
  return html`
    <li class="row inventory"><span class="grow"><strong>${one.id}</strong> ${!value.enabled && html`<${Badge}>off<//>`}
      <span class="quiet"> ${value.frequency.toLowerCase()}, ${value.format}, to ${value.bucket.replace("arn:aws:s3:::", "")}/${value.prefix ?? ""}</span></span>
      <${Button} onClick=${onEdit}>Change<//><${Button} kind="plain" icon="trash" label="Remove ${one.id}" onClick=${onRemove} /></li>`;
}

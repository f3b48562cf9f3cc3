// What can be done with the rows that are selected.
import { html, useMemo, useState } from "../../ui.js";
import { lazy } from "../../components/lazy.js";
import { Button } from "../../components/button.js";
import { toast } from "../../components/toast.js";
import { Bytes } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { downloadUrl, startDownload } from "./actions.js";

const ArchiveDialog = lazy(async () => (await import("./archive-dialog.js")).ArchiveDialog);
const DeleteDialog = lazy(async () => (await import("./delete-dialog.js")).DeleteDialog);
const TransferDialog = lazy(async () => (await import("./transfer-dialog.js")).TransferDialog);

/** Shows count and size of the selection, and its actions. */
export function SelectionBar({ bucket, prefix, versioning, listing, selection, list }) {
  const [dialog, setDialog] = useState(null);
  const chosen = useMemo(() => listing.rows.filter((row) => selection.has(row.key)), [listing.rows, selection]);
  const objects = chosen.filter((row) => !row.folder);
  const folders = chosen.filter((row) => row.folder);
  const bytes = objects.reduce((sum, row) => sum + row.size, 0);
  const close = (changed) => {
    setDialog(null);
    if (changed) selection.clear();
    list.current?.focus();
  };
  const download = () => {
    if (chosen.length !== 1 || folders.length) return setDialog("zip");
    return downloadUrl(bucket, objects[0].key).then(startDownload, (error) => toast(error.message, { kind: "bad" }));
  };
  const shared = { bucket, prefix, versioning, listing, chosen, onClose: close };
  return html`
    <div class="selection-bar row" role="group" aria-label="Selection">
      <span class="grow">${formatPlural(chosen.length, "row")} selected${objects.length > 0 && html` · <${Bytes} value=${bytes} />`}
        ${folders.length > 0 && ` · ${formatPlural(folders.length, "folder")}`}</span>
      <${Button} icon="download" onClick=${download}>${chosen.length === 1 && !folders.length ? "Download" : "Download zip"}<//>
      <${Button} icon="copy" onClick=${() => setDialog("copy")}>Copy<//>
      <${Button} onClick=${() => setDialog("move")}>${chosen.length === 1 ? "Rename or move" : "Move"}<//>
      <${Button} kind="danger" icon="trash" onClick=${() => setDialog("delete")}>Delete<//>
      <${Button} kind="plain" icon="close" label="Clear the selection" onClick=${() => close(true)} />
    </div>
    ${dialog === "zip" && html`<${ArchiveDialog} bucket=${bucket} keys=${objects.map((row) => row.key)} prefixes=${folders.map((row) => row.key)}
      root=${prefix.replace(/[^/]*$/, "")} onClose=${() => close(false)} />`}
    ${dialog === "delete" && html`<${DeleteDialog} ...${shared} />`}
    ${(dialog === "copy" || dialog === "move") && html`<${TransferDialog} ...${shared} isMove=${dialog === "move"} />`}`;
}

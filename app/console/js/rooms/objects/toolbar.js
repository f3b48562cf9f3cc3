// The buttons of a folder: filter, upload, and what applies to all of it.
import { html, useEffect, useRef, useState } from "../../ui.js";
import { lazy } from "../../components/lazy.js";
import { Button } from "../../components/button.js";
import { Menu } from "../../components/menu.js";
import { pathTo } from "../../router.js";
import { addFiles } from "./upload/add-files.js";
import { filesOfInput } from "./upload/chosen-files.js";

const ArchiveDialog = lazy(async () => (await import("./archive-dialog.js")).ArchiveDialog);
const FolderDialog = lazy(async () => (await import("./folder-dialog.js")).FolderDialog);

/** `look({ filter })` filters what is loaded; `/` goes to the filter, and Enter from there to the list. */
export function Toolbar({ bucket, prefix, versioning, listing, filter, look, list }) {
  const input = useRef(null);
  const files = useRef(null);
  const folder = useRef(null);
  const [dialog, setDialog] = useState(null);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      input.current.focus();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
  const onKeyDown = (event) => {
    if (event.key === "Escape") look({ filter: "" });
    else if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    list.current?.focus();
  };
  const take = (event) => {
    addFiles(bucket, filesOfInput(event.target, prefix), versioning);
    event.target.value = "";
  };
  const items = [
    { label: "New folder", onClick: () => setDialog("folder") },
    { label: "Download all of this as zip", onClick: () => setDialog("zip"), disabled: !listing.rows.length, why: "There is nothing here" },
    { label: "Open multipart uploads", href: pathTo(["buckets", bucket, "objects", "uploads"]) },
  ];
  return html`
    <div class="row toolbar">
      <input ref=${input} class="filter" type="search" aria-label="Filter what is loaded" aria-keyshortcuts="/" placeholder="Filter  /" value=${filter}
        spellcheck=${false} onInput=${(event) => look({ filter: event.target.value })} onKeyDown=${onKeyDown} />
      <span class="grow"></span>
      <${Button} icon="refresh" label="Load again" busy=${listing.loading} onClick=${listing.reload} />
      <${Button} kind="primary" icon="upload" onClick=${() => files.current.click()}>Upload files<//>
      <${Button} icon="folder" onClick=${() => folder.current.click()}>Upload a folder<//>
      <${Menu} label="More" items=${items} />
      <input ref=${files} type="file" multiple hidden aria-label="Files to upload" onChange=${take} />
      <input ref=${folder} type="file" webkitdirectory hidden aria-label="Folder to upload" onChange=${take} />
    </div>
    ${dialog === "folder" && html`<${FolderDialog} bucket=${bucket} prefix=${prefix} onClose=${() => setDialog(null)} />`}
    ${dialog === "zip" && html`<${ArchiveDialog} bucket=${bucket} keys=${[]} prefixes=${[prefix]} root=${prefix} onClose=${() => setDialog(null)} />`}`;
}

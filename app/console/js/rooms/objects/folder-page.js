// A folder of a bucket: its path, its list, what is selected, and the object that is open.
import { html, useEffect, useMemo, useRef, useState } from "../../ui.js";
import { lazy } from "../../components/lazy.js";
import { ErrorNote } from "../../components/error-note.js";
import { useCommands } from "../../components/palette.js";
import { navigate, pathTo } from "../../router.js";
import { useResource } from "../../resource.js";
import { BucketFrame, isGone } from "../buckets/bucket-frame.js";
import { readVersioning } from "./actions.js";
import { DropTarget } from "./drop-target.js";
import { EmptyFolder } from "./empty-folder.js";
import { arrange, useListing, withRow } from "./listing.js";
import { ListNote } from "./list-note.js";
import { ObjectList } from "./object-list.js";
import { PathBar } from "./path-bar.js";
import { folderPath } from "./paths.js";
import { SelectionBar } from "./selection-bar.js";
import { useSelection } from "./selection.js";
import { Toolbar } from "./toolbar.js";
import { onUploaded } from "./upload/queue-state.js";
import { UploadPanel } from "./upload/upload-panel.js";

const ObjectDialog = lazy(async () => (await import("./object-dialog.js")).ObjectDialog);

/** `open`: the key of the object whose dialog is open. */
export function FolderPage({ bucket, prefix, open, query }) {
  const listing = useListing(bucket, prefix);
  const versioning = useResource((signal) => readVersioning(bucket, signal), [bucket]).data;
  const selection = useSelection();
  const filter = query.get("filter") ?? "";
  const order = { by: query.get("sort") ?? "name", descending: query.get("descending") === "yes" };
  const rows = useMemo(() => arrange(listing.rows, prefix, filter, order), [listing.rows, prefix, filter, order.by, order.descending]);
  const list = useRef(null);
  const look = (change) => {
    const sort = (change.order ?? order).by;
    const descending = (change.order ?? order).descending ? "yes" : "";
    navigate(pathTo(["buckets", bucket, "objects"], { prefix, filter: change.filter ?? filter, sort: sort === "name" ? "" : sort, descending }), { replace: true });
  };
  const show = (row) => navigate(row.folder ? folderPath(bucket, row.key) : folderPath(bucket, prefix, row.key));
  const context = { bucket, prefix, versioning, listing, selection, rows };
  useEffect(() => selection.clear(), [bucket, prefix]);
  useUploaded(bucket, prefix, listing);
  useCommands("objects", () => [
    { label: `Reload ${bucket}`, run: listing.reload },
    { label: `Open uploads of ${bucket}`, href: pathTo(["buckets", bucket, "objects", "uploads"]) },
  ], [bucket, listing.reload]);
  const isEmpty = listing.complete && !listing.rows.length && !listing.error;
  return html`
    <${BucketFrame} name=${bucket} current="objects" gone=${isGone(listing.error)}>
      <${DropTarget} bucket=${bucket} prefix=${prefix} versioning=${versioning}>
        <div class="stack tight objects">
          <${PathBar} bucket=${bucket} prefix=${prefix} />
          <${Toolbar} ...${context} filter=${filter} look=${look} list=${list} />
          <${ErrorNote} error=${listing.error} retry=${listing.retry} />
          ${isEmpty
            ? html`<${EmptyFolder} bucket=${bucket} prefix=${prefix} />`
            : html`<${ObjectList} ...${context} filter=${filter} order=${order} look=${look} show=${show} list=${list} />
                <${ListNote} ...${context} filter=${filter} order=${order} />`}
        </div>
      <//>
      <div class="dock">
        ${selection.keys.size > 0 && html`<${SelectionBar} ...${context} list=${list} />`}
        <${UploadPanel} />
      </div>
      ${open && html`<${ObjectDialog} key=${open} bucket=${bucket} objectKey=${open} versioning=${versioning} listing=${listing}
        onClose=${() => navigate(folderPath(bucket, prefix))} />`}
    <//>`;
}

/** Adds what was uploaded to the list, some at a time. */
function useUploaded(bucket, prefix, listing) {
  const [arrived] = useState(() => ({ rows: [], timer: null }));
  useEffect(() => {
    const flush = () => {
      const fresh = arrived.rows;
      Object.assign(arrived, { rows: [], timer: null });
      listing.change((rows) => fresh.reduce((all, row) => withRow(all, row, listing.complete), rows));
    };
    const stop = onUploaded((item) => {
      if (item.bucket !== bucket || !item.key.startsWith(prefix)) return;
      const slash = item.key.indexOf("/", prefix.length);
      const row = slash < 0
        ? { key: item.key, size: item.size, modified: Date.now(), etag: "", storageClass: "STANDARD" }
        : { key: item.key.slice(0, slash + 1), folder: true };
      if (arrived.rows.length < 1000) arrived.rows.push(row);
      arrived.timer ??= setTimeout(flush, 500);
    });
    return () => {
      stop();
      clearTimeout(arrived.timer);
      Object.assign(arrived, { rows: [], timer: null });
    };
  }, [bucket, prefix, listing.change, listing.complete]);
}

// Multipart uploads that were begun and not completed: their parts take space until somebody aborts them.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { DataTable } from "../../components/data-table.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty, Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Bytes, Time } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { pathTo } from "../../router.js";
import { useResource } from "../../resource.js";
import { callS3, callS3Xml } from "../../s3.js";
import { childrenOf, textOf } from "../../xml.js";
import { folderPath } from "./paths.js";
import { items } from "./upload/queue-state.js";

const MAX_SHOWN = 200;

async function readUploads(bucket, signal) {
  const query = { uploads: "", "encoding-type": "url", "max-uploads": String(MAX_SHOWN) };
  const root = await callS3Xml({ bucket, query, signal });
  const rows = childrenOf(root, "Upload").map((one) => ({
    key: decodeURIComponent(textOf(one, "Key").replaceAll("+", "%20")), id: textOf(one, "UploadId"), begun: textOf(one, "Initiated"),
  }));
  return { rows, isCut: textOf(root, "IsTruncated") === "true" };
}

/** Returns { parts, bytes } of an upload; 1000 parts at most. */
async function measure(bucket, { key, id }) {
  const root = await callS3Xml({ bucket, key, query: { uploadId: id } });
  const parts = childrenOf(root, "Part");
  return { parts: parts.length, bytes: parts.reduce((sum, one) => sum + Number(textOf(one, "Size")), 0), isCut: textOf(root, "IsTruncated") === "true" };
}

/** Lists and aborts them. */
export function OpenUploads({ bucket }) {
  const { data, error, reload } = useResource((signal) => readUploads(bucket, signal), [bucket]);
  const abort = async (rows) => {
    const message = "Their parts are removed. An upload that still runs has to begin again.";
    const action = rows.length === 1 ? "Abort it" : `Abort ${rows.length}`;
    if (!(await confirm({ title: `Abort ${formatPlural(rows.length, "upload")}?`, message, details: rows.slice(0, 5).map((row) => row.key), action }))) return;
    let failed = null;
    for (const row of rows) {
      await callS3({ method: "DELETE", bucket, key: row.key, query: { uploadId: row.id } }).catch((one) => {
        if (one.code !== "NoSuchUpload") failed = one;
      });
    }
    toast(failed ? failed.message : `${formatPlural(rows.length, "upload")} aborted`, { kind: failed ? "bad" : "good" });
    reload();
  };
  const columns = [
    { name: "key", label: "Key", render: (row) => html`<code>${row.key}</code>${isOurs(row) ? html` <span class="quiet small">(this tab)</span>` : ""}`, sort: (row) => row.key },
    { name: "begun", label: "Begun", render: (row) => html`<${Time} value=${row.begun} />`, sort: (row) => row.begun },
    { name: "parts", label: "Parts", render: (row) => html`<${Parts} key=${row.id} bucket=${bucket} row=${row} />`, wideOnly: true },
    { name: "act", label: "", render: (row) => html`<${Button} kind="danger" label="Abort ${row.key}" onClick=${() => abort([row])}>Abort<//>` },
  ];
  return html`
    <${Page} title="Open uploads" crumbs=${[{ label: "Buckets", href: pathTo(["buckets"]) }, { label: bucket, href: folderPath(bucket, "") }]}
      actions=${data?.rows.length > 1 && html`<${Button} kind="danger" onClick=${() => abort(data.rows)}>Abort all that are shown<//>`}>
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && (data.rows.length
        ? html`<${DataTable} columns=${columns} rows=${data.rows} rowKey=${(row) => row.id} caption="Open uploads" sortedBy="begun" />
            ${data.isCut && html`<p class="quiet small">The first ${MAX_SHOWN} are shown.</p>`}`
        : html`<${Empty} title="No open uploads" action="To the objects" href=${folderPath(bucket, "")}>
            Uploads in parts that somebody began and did not complete stand here. A lifecycle rule can abort them by itself.<//>`)}
    <//>`;
}

function isOurs(row) {
  return [...items.values()].some((item) => item.uploadId === row.id);
}

/** What an upload has so far, counted when it is asked for. */
function Parts({ bucket, row }) {
  const [found, setFound] = useState(null);
  const count = () => measure(bucket, row).then(setFound, (error) => toast(error.message, { kind: "bad" }));
  if (!found) return html`<${Button} kind="plain" onClick=${count}>Count<//>`;
  return html`${formatPlural(found.parts, "part")}${found.isCut ? " or more" : ""}, <${Bytes} value=${found.bytes} />`;
}

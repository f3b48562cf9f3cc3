// Shows what an object has, never as content of this page's origin that could act.
import { html } from "../../../ui.js";
import { ErrorNote } from "../../../components/error-note.js";
import { useResource } from "../../../resource.js";
import { presign } from "../../../s3.js";
import { CsvPreview } from "./csv-preview.js";
import { kindOf } from "./kinds.js";
import { ParquetPreview } from "./parquet-preview.js";
import { TextPreview } from "./text-preview.js";

const PARTS = { text: TextPreview, csv: CsvPreview, parquet: ParquetPreview };

/** Chooses the preview by content type and name. */
export function Preview({ bucket, objectKey, head }) {
  const kind = head.storageClass === "GLACIER" && !head.restore ? "archived" : kindOf(head.type, objectKey);
  const Part = PARTS[kind];
  if (!head.size) return html`<p class="quiet">The object is empty.</p>`;
  if (Part) return html`<${Part} key=${head.etag} bucket=${bucket} objectKey=${objectKey} head=${head} />`;
  if (kind === "archived") return html`<p class="quiet">The object is archived: restore it first.</p>`;
  if (!kind) return html`<p class="quiet">There is no preview of ${head.type || "this type"}. Download it, or change its Content-Type under Properties.</p>`;
  return html`<${Media} key=${head.etag} bucket=${bucket} objectKey=${objectKey} kind=${kind} />`;
}

/** Bytes that the browser shows itself, from the S3 listener. A PDF is sent as one whatever the object says it is. */
function Media({ bucket, objectKey, kind }) {
  const query = kind === "pdf" ? { "response-content-type": "application/pdf", "response-content-disposition": "inline" } : {};
  const { data: url, error, reload } = useResource(() => presign({ method: "GET", bucket, key: objectKey, query, headers: {} }), [bucket, objectKey, kind]);
  if (!url) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  const name = objectKey.split("/").at(-1);
  if (kind === "image") return html`<img class="media" src=${url} alt=${name} />`;
  if (kind === "video") return html`<video class="media" src=${url} controls preload="metadata" aria-label=${name}></video>`;
  if (kind === "audio") return html`<audio src=${url} controls preload="metadata" aria-label=${name}></audio>`;
  return html`<iframe class="document" src=${url} title=${name} referrerpolicy="no-referrer"></iframe>`;
}

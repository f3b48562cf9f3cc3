// The first rows of a Parquet object, which the gateway reads.
import { html } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { ErrorNote } from "../../../components/error-note.js";
import { formatPlural } from "../../../format.js";
import { useResource } from "../../../resource.js";
import { HeadTable } from "./head-table.js";

/** Shows columns with their types, and rows; or why there are none. */
export function ParquetPreview({ bucket, objectKey }) {
  const read = (signal) => callApi("GET", "previews/parquet", { query: { bucket, key: objectKey }, signal });
  const { data, error, reload } = useResource(read, [bucket, objectKey]);
  if (error) return html`<${ErrorNote} error=${error} retry=${error.status === 501 ? undefined : reload} />`;
  if (!data) return html`<p class="quiet" role="status">Reading its first rows…</p>`;
  return html`<${HeadTable} columns=${data.columns} rows=${data.head} caption="First rows" />
    <p class="quiet small">${formatPlural(data.rows, "row")} in ${formatPlural(data.row_groups, "row group")}${data.hidden_columns ? `, ${formatPlural(data.hidden_columns, "more column")}` : ""}.</p>`;
}

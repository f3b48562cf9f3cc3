// Says how much of a folder is loaded, and that filter and sort look at no more than that.
import { html } from "../../ui.js";
import { Button } from "../../components/button.js";
import { formatCount, formatPlural } from "../../format.js";
import { folderPath } from "./paths.js";
import { MAX_ROWS } from "./listing.js";

/** Shows the count, and the next step where there is more. */
export function ListNote({ bucket, prefix, listing, rows, filter, order }) {
  const { complete, full, loading } = listing;
  const loaded = listing.rows.length;
  const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1); // names are shown below it, also where the last one is unfinished
  const isPartial = !complete && (filter || order.by !== "name" || order.descending);
  const what = filter ? `${formatCount(rows.length)} of ${formatCount(loaded)} loaded` : `${formatPlural(loaded, "row")}${complete ? "" : " loaded, more to come"}`;
  return html`
    <div class="row small quiet list-note" role="status">
      <span>${loading && !loaded ? "Loading…" : what}</span>
      ${isPartial && html`<span>${filter ? "The filter looks at" : "The order is that of"} what is loaded only.</span>`}
      ${full && html`<span>A tab keeps ${formatCount(MAX_ROWS)} rows: open a folder, or list by the beginning of a name.</span>`}
      ${!complete && !full && html`<${Button} kind="plain" busy=${loading} onClick=${listing.more}>Load 1,000 more<//>`}
      ${filter && !complete && html`<${Button} kind="plain" href=${folderPath(bucket, folder + filter)}>List all names that begin with “${filter}”<//>`}
    </div>`;
}

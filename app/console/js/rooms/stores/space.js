import { html } from "../../ui.js";
import { formatBytes, formatCount } from "../../format.js";
import { Part } from "./part.js";

const NEARLY_FULL = 0.9;
const FULL = 0.97;

/** How full the file system of a store is, in bytes and inodes. */
export function Space({ store }) {
  return html`<${Part} part=${store.space} what="The file system">${(space) => html`
    <div class="stack tight">
      ${space.total === null
        ? html`<p class="quiet small">How much space there is cannot be asked of such a store.</p>`
        : html`<${Bar} label="Space" used=${space.total - space.free} total=${space.total}
            text=${`${formatBytes(space.free)} of ${formatBytes(space.total)} free`} title=${`${formatCount(space.free)} of ${formatCount(space.total)} bytes`} />`}
      ${space.inodes !== null && html`<${Bar} label="Inodes" used=${space.inodes - space.free_inodes} total=${space.inodes}
          text=${`${formatCount(space.free_inodes)} of ${formatCount(space.inodes)} inodes free`} />`}
    </div>`}<//>`;
}

function Bar({ label, used, total, text, title }) {
  return html`
    <div title=${title}>
      <meter min="0" max=${total} high=${total * NEARLY_FULL} low=${total * NEARLY_FULL} optimum="0" value=${used}
        class=${used > total * FULL ? "full" : ""} aria-label=${`${label} used`}></meter>
      <div class="small quiet">${text}</div>
    </div>`;
}

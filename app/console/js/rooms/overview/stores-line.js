import { html } from "../../ui.js";
import { formatBytes, formatPlural } from "../../format.js";
import { pathTo } from "../../router.js";
import { may } from "../../session.js";
import { ConditionBadge } from "../stores/condition.js";
import { Time } from "../../components/values.js";

const NEARLY_FULL = 0.9;
const FULL = 0.97;

/** The stores in a line each, with a way to their cards. */
export function StoresLine({ stores }) {
  return html`
    <section class="stack tight" aria-labelledby="stores-line">
      <h2 id="stores-line">Stores</h2>
      <ul class="grid plain-list">${stores.map((store) => html`<${StoreLine} key=${store.name} store=${store} />`)}</ul>
    </section>`;
}

function StoreLine({ store }) {
  const used = store.total === null ? null : store.total - store.free;
  const name = html`<strong class="cut">${store.name}</strong>`;
  return html`
    <li class="card stack tight">
      <div class="row">
        ${may("sluice:ListStores") ? html`<a class="grow cut" href=${pathTo(["stores"], { store: store.name })}>${name}</a>` : html`<span class="grow cut">${name}</span>`}
        <${ConditionBadge} condition=${store.condition} silentSince=${store.silent_since} />
      </div>
      ${used !== null && html`<meter min="0" max=${store.total} high=${store.total * NEARLY_FULL} low=${store.total * NEARLY_FULL} optimum="0" value=${used}
        aria-label=${`Space used on ${store.name}`} class=${used > store.total * FULL ? "full" : ""}></meter>`}
      <div class="small quiet">${describe(store, used)}</div>
    </li>`;
}

function describe(store, used) {
  const buckets = store.buckets === null ? "" : formatPlural(store.buckets, "bucket");
  const space = used === null ? "" : `${formatBytes(store.free)} of ${formatBytes(store.total)} free`;
  return html`${[space, buckets].filter(Boolean).join(" · ")}${store.silent_since !== null && html` (does not answer since <${Time} value=${store.silent_since} />)`}`;
}

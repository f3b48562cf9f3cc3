import { html, useEffect, useRef } from "../../ui.js";
import { formatPlural } from "../../format.js";
import { navigate, pathTo } from "../../router.js";
import { Badge, Time } from "../../components/values.js";
import { ConditionBadge } from "./condition.js";
import { Details } from "./details.js";
import { Latency } from "./latency.js";
import { Space } from "./space.js";

/** A store: what it is, how it is, and on demand all that is known of it. `open`: its details are shown. */
export function StoreCard({ store, open }) {
  const card = useRef(null);
  useEffect(() => {
    if (open) card.current.scrollIntoView({ block: "nearest" });
  }, []);
  const toggle = (event) => {
    event.preventDefault();
    navigate(pathTo(["stores"], { store: open ? "" : store.name }), { replace: true });
  };
  const { breaker } = store;
  return html`
    <article class="card store" ref=${card} aria-labelledby=${`store-${store.name}`}>
      <header class="row">
        <h2 id=${`store-${store.name}`} class="cut">${store.name}</h2>
        <${ConditionBadge} condition=${breaker.condition} silentSince=${store.latency.silent_since} />
        ${store.default && html`<${Badge} title="Buckets go here whose region names no store.">default<//>`}
        ${IN_MEMORY.includes(store.mount?.kind) && html`<${Badge} kind="warn" title="Nothing here survives a power cut, whatever the store promises.">in memory<//>`}
        ${store.scrub.value?.damaged > 0 && html`<${Badge} kind="bad">${formatPlural(store.scrub.value.damaged, "damaged body", "damaged bodies")}<//>`}
      </header>
      <p class="small quiet">${describe(store)}</p>
      ${breaker.reason && html`<p class="note bad small" role="status">Reason: ${breaker.reason}${breaker.since && html` (since <${Time} value=${breaker.since} />)`}</p>`}
      <div class="vitals"><div class="stack tight"><${Space} store=${store} /></div><${Latency} latency=${store.latency} down=${breaker.condition === "down"} /></div>
      <details open=${open}>
        <summary onClick=${toggle}>Details of ${store.name}</summary>
        ${open && html`<${Details} store=${store} />`}
      </details>
    </article>`;
}

function describe(store) {
  const { mount, buckets } = store;
  const where = mount?.kind ? `${mount.kind} on ${mount.device}, mounted at ${mount.point}` : "not a mount of this machine";
  const how = [`driver ${store.driver}`, `layout ${store.layout}`, DURABILITIES[store.durability], ETAGS[store.etag]];
  const held = buckets.value === null ? [] : [formatPlural(buckets.value, "bucket")];
  return [mount ? where : "mount unknown", ...how, ...held].filter(Boolean).join(" · ");
}

const IN_MEMORY = ["tmpfs", "ramfs"];
const DURABILITIES = { full: "durable before the answer", relaxed: "relaxed: a power cut may lose acknowledged writes" };
const ETAGS = { crc64nvme: "ETags by CRC64NVME" };

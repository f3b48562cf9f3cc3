// The room Stores: a card for each backing store.
import { html } from "../../ui.js";
import { callApi } from "../../api.js";
import { usePolled } from "../../polling.js";
import { pathTo } from "../../router.js";
import { may } from "../../session.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { loadStyle } from "../../components/style.js";
import { StoreCard } from "./store-card.js";

const SECONDS = 5;

await loadStyle(import.meta.url, "stores.css");

/** Shows the room; the query's `store` names the card that is open. */
export default function Stores({ query }) {
  const { data, error, reload } = usePolled((signal) => callApi("GET", "store-health", { signal }), SECONDS);
  return html`
    <${Page} title="Stores">
      <div class="stack">
        <${ErrorNote} error=${error} retry=${reload} />
        ${!data && !error && html`<div class="card skeleton store" aria-hidden="true"></div>`}
        ${data?.map((store) => html`<${StoreCard} key=${store.name} store=${store} open=${query.get("store") === store.name} />`)}
        ${data && html`<p class="small quiet">Latency: while this page is open, each store is asked every five seconds to read a small file and to
          write and sync 4 KiB, otherwise twice a minute.${" "}
          ${may("sluice:ListLoadTests") ? html`To compare disks under load, <a href=${pathTo(["load-tests"])}>run a load test</a>.` : ""}</p>`}
      </div>
    <//>`;
}

// The log of administrative changes.
import { html, useEffect, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Empty } from "../../../components/page.js";
import { Badge, Operation, Time } from "../../../components/values.js";
import { formatPlural } from "../../../format.js";
import { useAction, useResource } from "../../../resource.js";
import { useFilters } from "../filters.js";
import { AuditFilters, NAMES, toQuery } from "./audit-filters.js";
import { EventDialog } from "./event-dialog.js";

const PAGE = 100;

/** Shows events, the newest first, a hundred at a time. */
export function AuditPage({ query }) {
  const [filters, setFilter, applied] = useFilters("audit", NAMES, query);
  const wanted = toQuery(applied);
  const signature = new URLSearchParams(wanted).toString();
  const { data, error, loading, reload } = useResource((signal) => load(wanted, "", signal), [signature]);
  const [more, setMore] = useState({ events: [], next: null });
  const [open, setOpen] = useState(null);
  useEffect(() => setMore({ events: [], next: data?.next ?? null }), [data]);
  const [loadMore, next] = useAction(async () => {
    const page = await load(wanted, more.next);
    setMore({ events: [...more.events, ...page.events], next: page.next });
  });
  const events = [...(data?.events ?? []), ...more.events];
  const lines = `/api/v1/audit-events?${new URLSearchParams({ ...wanted, format: "jsonl" })}`;
  return html`
    <div class="stack">
      <${AuditFilters} values=${filters} onChange=${setFilter} />
      <div class="row">
        <${Button} icon="refresh" busy=${loading} onClick=${reload}>Refresh<//>
        <${Button} icon="download" href=${lines} download="audit-events.jsonl">As JSON lines<//>
      </div>
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && !events.length && html`<${Empty} title="No such change">Changes of buckets' settings, of users and keys, of jobs and accounts, and sign-ins are recorded here. Work with objects is in the access log.<//>`}
      ${events.length > 0 && html`<${EventTable} events=${events} show=${setOpen} />`}
      <${ErrorNote} error=${next.error} retry=${loadMore} />
      ${more.next && html`<div><${Button} busy=${next.busy} onClick=${() => loadMore()}>Show older ones<//></div>`}
      ${data && html`<p class="quiet small">Changes are kept for ${formatPlural(data.retention_days, "day")} (SLUICE_AUDIT_RETENTION_DAYS): at most a million, and 100,000 refused ones.</p>`}
      ${open && html`<${EventDialog} event=${open} onClose=${() => setOpen(null)} onFilter=${setFilter} />`}
    </div>`;
}

function load(wanted, after, signal) {
  return callApi("GET", "audit-events", { query: { ...wanted, limit: PAGE, ...(after ? { after } : {}) }, signal });
}

function EventTable({ events, show }) {
  return html`
    <div class="scroll"><table class="event-table">
      <caption class="screen-reader">Administrative changes, the newest first</caption>
      <thead><tr><th scope="col">Time</th><th scope="col">Action</th><th scope="col" class="wide-only">Who</th><th scope="col" class="wide-only">What</th><th scope="col">Outcome</th></tr></thead>
      <tbody>${events.map((one) => html`
        <tr key=${one.id}>
          <td><${Time} value=${one.time} /></td>
          <td><button type="button" class="link" onClick=${() => show(one)}><${Operation} name=${one.action} /></button>
            <div class="narrow-only quiet small">${shortName(one.principal)}, ${one.address || one.source}</div></td>
          <td class="wide-only" title=${one.principal}>${shortName(one.principal)}<div class="quiet small">${one.address || one.source}</div></td>
          <td class="wide-only event-resource mono small">${one.resource || "–"}</td>
          <td><${Badge} kind=${one.outcome === "Success" ? "good" : "bad"}>${one.outcome}<//></td>
        </tr>`)}</tbody>
    </table></div>`;
}

function shortName(principal) {
  return principal.split(":").pop() || "nobody known";
}

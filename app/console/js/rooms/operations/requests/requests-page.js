// Requests of this gateway as they are answered.
import { html, useRef, useState } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { Empty } from "../../../components/page.js";
import { formatCount, formatPlural } from "../../../format.js";
import { useLive } from "../../../live.js";
import { useFilters, usedOf } from "../filters.js";
import { RequestDialog } from "./request-dialog.js";
import { RequestFilters, NAMES } from "./request-filters.js";
import { RequestList } from "./request-list.js";

const MAX_KEPT = 2000;
const STATES = { connecting: "Connecting…", waiting: "The gateway does not answer. Trying again…", hidden: "Resting while the tab is hidden." };

/** Shows the live list, its filters, and one request in a dialog. */
export function RequestsPage({ query }) {
  const [filters, setFilter, applied] = useFilters("requests", NAMES, query);
  const [shown, setShown] = useState({ requests: [], missed: 0 });
  const [held, setHeld] = useState({ requests: [], missed: 0 });
  const [paused, setPaused] = useState(false);
  const [failure, setFailure] = useState("");
  const [open, setOpen] = useState(null);
  const list = useRef(null);
  const search = new URLSearchParams(usedOf(applied)).toString();
  const state = useLive(`requests${search && `?${search}`}`, {
    requests: (batch) => {
      const waits = paused || open || (list.current && list.current.scrollTop > 0);
      (waits ? setHeld : setShown)((before) => merge(before, batch));
    },
    failed: ({ detail }) => setFailure(detail),
  });
  const release = () => {
    setShown((before) => ({ requests: [...held.requests, ...before.requests].slice(0, MAX_KEPT), missed: before.missed + held.missed }));
    setHeld({ requests: [], missed: 0 });
  };
  const toggle = () => {
    if (paused) release();
    setPaused(!paused);
  };
  const showNew = () => {
    release();
    if (list.current) list.current.scrollTop = 0;
  };
  const clear = () => {
    setShown({ requests: [], missed: 0 });
    setHeld({ requests: [], missed: 0 });
  };
  const status = failure || STATES[state] || (paused ? "Paused." : "Live, from this gateway.");
  return html`
    <div class="stack">
      <${RequestFilters} values=${filters} onChange=${setFilter} />
      <div class="row">
        <${Button} icon=${paused ? "play" : "pause"} onClick=${toggle}>${paused ? "Go on" : "Pause"}<//>
        <${Button} icon="trash" disabled=${!shown.requests.length} onClick=${clear}>Clear<//>
        ${held.requests.length > 0 && !paused && html`<${Button} kind="primary" icon="up" onClick=${showNew}>Show ${formatCount(held.requests.length)} new<//>`}
        <span class="quiet grow live-state" role="status">${status}${paused && held.requests.length > 0 ? ` ${formatPlural(held.requests.length, "new request")}.` : ""}</span>
        ${shown.missed + held.missed > 0 && html`
          <span class="badge warn" title="More requests were answered than can be shown. Filters show those that matter to you.">${formatCount(shown.missed + held.missed)} not shown</span>`}
      </div>
      ${shown.requests.length
        ? html`<${RequestList} requests=${shown.requests} list=${list} show=${setOpen} />`
        : html`<${Empty} title="No requests yet">Requests to this gateway appear here as they are answered${search ? ", if they pass the filters" : ""}. Those of other gateways are shown by their consoles.<//>`}
      ${open && html`<${RequestDialog} request=${open} onClose=${() => setOpen(null)} onFilter=${setFilter} />`}
    </div>`;
}

function merge(before, { requests, missed }) {
  if (!requests.length && !missed) return before;
  return { requests: [...requests.reverse(), ...before.requests].slice(0, MAX_KEPT), missed: before.missed + missed };
}

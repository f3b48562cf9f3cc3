// The live list: virtual, newest first, by pointer and by keyboard.
import { classes, html, useState } from "../../../ui.js";
import { VirtualList } from "../../../components/virtual-list.js";
import { formatBytes, formatNumber, formatUtc } from "../../../format.js";

const LINE_PX = 36;
const PAGE_LINES = 12;
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE_LINES, PageUp: -PAGE_LINES, Home: -Infinity, End: Infinity };
const HEADS = ["Time", "Status", "Operation", "Bucket and key", "Caller", "Bytes", "ms"];
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false });

/** Shows requests; `show(request)` opens one. `list` is a ref to its element. */
export function RequestList({ requests, list, show }) {
  const [chosen, setChosen] = useState(null);
  const active = Math.max(0, requests.indexOf(chosen));
  const onKeyDown = (event) => {
    if (event.key in STEPS) setChosen(requests[Math.max(0, Math.min(requests.length - 1, active + STEPS[event.key]))]);
    else if (event.key === "Enter") show(requests[active]);
    else return;
    event.preventDefault();
  };
  const onLineClick = (index) => {
    setChosen(requests[index]);
    show(requests[index]);
  };
  return html`
    <div>
      <div class="request-line request-head" aria-hidden="true">${HEADS.map((head) => html`<span key=${head}>${head}</span>`)}</div>
      <${VirtualList} count=${requests.length} lineHeight=${LINE_PX} columns=${HEADS.length} label="Requests, the newest first. Enter shows one." listRef=${list}
        active=${active} scrollTo=${chosen ? active : undefined} onKeyDown=${onKeyDown} onLineClick=${onLineClick}
        renderLine=${(index) => renderRequest(requests[index])} />
    </div>`;
}

/** Returns the class of a status. */
export function kindOf(status) {
  return status >= 500 ? "bad" : status >= 400 ? "warn" : "good";
}

function renderRequest(one) {
  const place = one.bucket ? `${one.bucket}${one.key === null ? "" : `/${one.key}`}` : "–";
  const caller = one.principal ? one.principal.split(":").pop() : one.access_key || "anonymous";
  const bytes = one.bytes_out || one.bytes_in;
  return html`
    <div class="request-line">
      <span role="gridcell" class="mono" title=${formatUtc(one.time)}>${clock.format(new Date(one.time))}</span>
      <span role="gridcell"><span class=${classes("badge", kindOf(one.status))}>${one.status}</span></span>
      <span role="gridcell" class="cut" title=${one.operation}>${one.operation}</span>
      <span role="gridcell" class="cut mono" title=${place}>${place}</span>
      <span role="gridcell" class="cut" title=${one.principal || one.access_key || ""}>${caller}</span>
      <span role="gridcell" class="number">${bytes ? formatBytes(bytes) : "–"}</span>
      <span role="gridcell" class="number">${formatNumber(one.ms)}</span>
    </div>`;
}

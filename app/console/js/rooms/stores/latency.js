import { html } from "../../ui.js";
import { formatSeconds } from "../../format.js";
import { Time } from "../../components/values.js";
import { Sparkline } from "./sparkline.js";

const CALLS = [
  { name: "read", place: 1, color: "c0", title: "Opening and reading a small file, not from this machine's cache" },
  { name: "sync", place: 2, color: "c1", title: "Writing 4 KiB and syncing them" },
];

/** How long a small read and a small sync take, as lines of the last 15 minutes. `down`: the card says already that nothing answers. */
export function Latency({ latency, down }) {
  return html`
    <div class="latency">
      ${CALLS.map((call) => html`<${Call} key=${call.name} call=${call} points=${latency.points.map((point) => [point[0], point[call.place]])} />`)}
      ${latency.silent_since !== null && !down && html`<p class="note warn small" role="status">It does not answer since <${Time} value=${latency.silent_since} />.</p>`}
    </div>`;
}

function Call({ call, points }) {
  const measured = points.map(([, value]) => value).filter((value) => value !== null);
  if (measured.length === 0) {
    return html`<div class="call quiet small" title=${call.title}>${call.name}: not measured${points.length ? "" : " yet"}</div>`;
  }
  const sorted = [...measured].sort((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)];
  const last = points.at(-1)[1];
  const words = `${call.name}: median ${formatSeconds(median)}, longest ${formatSeconds(sorted.at(-1))} in the last 15 minutes`;
  return html`
    <div class="call" title=${`${call.title}. ${words}`}>
      <div class="row"><span class="quiet small grow">${call.name}</span> <strong class="value">${last === null ? "failed" : formatSeconds(last)}</strong></div>
      <${Sparkline} points=${points} color=${call.color} label=${words} />
      <div class="small quiet">median ${formatSeconds(median)}, longest ${formatSeconds(sorted.at(-1))}</div>
    </div>`;
}

import { html } from "../../ui.js";
import { formatBytes, formatNumber, formatSeconds } from "../../format.js";
import { newest } from "./samples.js";

/** What the gateway does this second, in figures. `stale`: they are from before, since it does not answer. */
export function Numbers({ samples, stale }) {
  const now = newest(samples);
  const errors = now.requests === undefined ? undefined : now.client_errors + now.server_errors;
  const kinds = `${formatNumber(now.client_errors)} were the client's fault (4xx), ${formatNumber(now.server_errors)} the gateway's (5xx)`;
  const hint = stale ? "The gateway does not answer: these are the last figures that it sent." : undefined;
  const bytes = (value) => (value === undefined ? "–" : `${formatBytes(Math.round(value))}/s`);
  return html`
    <dl class=${stale ? "figures stale" : "figures"} title=${hint}>
      <${Figure} label="Requests" value=${formatNumber(now.requests)} unit="a second" />
      <${Figure} label="Errors" value=${formatNumber(errors)} unit="a second" bad=${now.server_errors > 0}
        title=${now.requests === undefined ? undefined : kinds} />
      <${Figure} label="Latency" value=${formatSeconds(now.p50)} unit=${`p99 ${formatSeconds(now.p99)}`} title="Of the last ten seconds" />
      <${Figure} label="In" value=${bytes(now.bytes_in)} unit="uploads" />
      <${Figure} label="Out" value=${bytes(now.bytes_out)} unit="downloads" />
      <${Figure} label="Running" value=${formatNumber(now.running)} unit="requests" />
    </dl>`;
}

function Figure({ label, value, unit, bad, title }) {
  return html`
    <div class=${bad ? "card figure bad" : "card figure"} title=${title}>
      <dt class="small quiet">${label}</dt>
      <dd><span class="value">${value}</span> <span class="small quiet">${unit}</span></dd>
    </div>`;
}

// What was asked of the gateway in the last minute, by operation and by bucket.
import { html } from "../../ui.js";
import { formatBytes, formatNumber, formatSeconds } from "../../format.js";
import { pathTo } from "../../router.js";
import { DataTable } from "../../components/data-table.js";
import { Operation } from "../../components/values.js";

const rate = (bytes) => (bytes > 0 ? `${formatBytes(Math.round(bytes))}/s` : "–");

const NAME = { name: "name", sort: (row) => row.name };
const REQUESTS = { name: "requests", label: "Requests/s", number: true, sort: (row) => row.requests, render: (row) => formatNumber(row.requests) };
const ERRORS = { name: "errors", label: "Errors/s", number: true, sort: (row) => row.client_errors + row.server_errors, render: renderErrors };
const IN = { name: "in", label: "In", number: true, wideOnly: true, sort: (row) => row.bytes_in, render: (row) => rate(row.bytes_in) };
const OUT = { name: "out", label: "Out", number: true, wideOnly: true, sort: (row) => row.bytes_out, render: (row) => rate(row.bytes_out) };
const BY_OPERATION = [
  { ...NAME, label: "Operation", render: (row) => html`<span class="mono"><${Operation} name=${row.name} /></span>` },
  REQUESTS,
  ERRORS,
  { name: "p50", label: "p50", number: true, wideOnly: true, sort: (row) => row.p50?.[0], render: (row) => renderQuantile(row.p50) },
  { name: "p99", label: "p99", number: true, sort: (row) => row.p99?.[0], render: (row) => renderQuantile(row.p99) },
  IN,
  OUT,
];
const BY_BUCKET = [{ ...NAME, label: "Bucket", render: renderBucket }, REQUESTS, ERRORS, IN, OUT];
const OTHER = "other";

/** Shows the requests by operation. */
export function OperationsTable({ samples }) {
  return html`
    <section class="stack tight" aria-labelledby="operations">
      <h2 id="operations">By operation</h2>
      ${samples.known && samples.operations.length === 0
        ? html`<p class="quiet">No requests in the last minute. As soon as a client sends one, it is counted here.</p>`
        : html`<${DataTable} columns=${BY_OPERATION} rows=${samples.operations} rowKey=${(row) => row.name} sortedBy="name" caption="Requests of the last minute by operation" />`}
      <p class="small quiet">Of the last minute. Latencies are counted in steps (1, 2.5, 5, 10 ms and so on), so that a value is an
        estimate between two of them: point at it to see which.</p>
    </section>`;
}

/** Shows the buckets with the most requests, where they are counted. */
export function BucketsTable({ samples: { buckets } }) {
  if (!buckets) return null;
  return html`
    <section class="stack tight" aria-labelledby="by-bucket">
      <h2 id="by-bucket">By bucket</h2>
      ${buckets.length === 0
        ? html`<p class="quiet">No bucket was asked for anything in the last minute.</p>`
        : html`<${DataTable} columns=${BY_BUCKET} rows=${buckets} rowKey=${(row) => row.name} sortedBy="name" caption="Requests of the last minute by bucket" />`}
      <p class="small quiet">Of the last minute, looked at every ten seconds: the buckets with the most requests.</p>
    </section>`;
}

function renderBucket({ name }) {
  if (name === OTHER) return html`<span class="quiet" title="Buckets without a count of their own: SLUICE_METRICS_BUCKETS says how many have one.">all others</span>`;
  return html`<a class="mono" href=${pathTo(["buckets", name, "objects"])}>${name}</a>`;
}

function renderErrors(row) {
  const errors = row.client_errors + row.server_errors;
  if (!errors) return "–";
  const title = `${formatNumber(row.client_errors)} a second were the client's fault (4xx), ${formatNumber(row.server_errors)} the gateway's (5xx)`;
  return html`<span class=${row.server_errors > 0 ? "bad-text" : ""} title=${title}>${formatNumber(errors)}</span>`;
}

function renderQuantile(quantile) {
  if (!quantile) return "–";
  const [estimate, low, high] = quantile;
  if (high === null) return html`<span title=${`Longer than ${formatSeconds(low)}`}>> ${formatSeconds(low)}</span>`;
  return html`<span title=${`Between ${formatSeconds(low)} and ${formatSeconds(high)}`}>${formatSeconds(estimate)}</span>`;
}

// The gateways on this index.
import { html, useEffect } from "../../ui.js";
import { callApi } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Badge, Time } from "../../components/values.js";
import { formatPlural, formatSeconds } from "../../format.js";
import { useResource } from "../../resource.js";

const POLL_MS = 3000;
const STATES = {
  up: ["good", "Up"],
  unknown: ["", "Being observed"],
  silent: ["bad", "No heartbeat"],
  dead: ["bad", "Declared dead"],
};

/** Shows a card for each gateway. */
export function GatewaysPage() {
  const { data, error, reload } = useResource((signal) => callApi("GET", "gateways", { signal }), []);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return html`
    <div class="stack">
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && html`<div class="gateways">${data.map((one) => html`<${GatewayCard} key=${one.name} gateway=${one} />`)}</div>`}
      ${data && data.length === 1 && html`<p class="quiet">This gateway is alone on its index. Several gateways share an index in Postgres.</p>`}
    </div>`;
}

function GatewayCard({ gateway }) {
  const [kind, label] = STATES[gateway.state];
  return html`
    <section class="card stack tight" aria-label=${gateway.name}>
      <div class="row"><h2 class="grow">${gateway.host || gateway.name}</h2>${gateway.this && html`<${Badge} kind="accent">this one<//>`}<${Badge} kind=${kind}>${label}<//></div>
      <dl class="facts">
        <dt>Version</dt><dd>${gateway.version || "–"}</dd>
        <dt>Since</dt><dd><${Time} value=${gateway.since} /></dd>
        <dt>Workers</dt><dd>${formatPlural(gateway.workers.length, "worker")}
          ${gateway.workers.some((one) => one.pid) && html` <span class="quiet">(processes ${gateway.workers.map((one) => one.pid).join(", ")})</span>`}</dd>
        <dt>Heartbeat</dt><dd>${gateway.heartbeat_seconds === null ? html`<span class="quiet">${gateway.state === "unknown" ? "not seen yet" : "none is needed"}</span>` : `${formatSeconds(gateway.heartbeat_seconds)} ago`}</dd>
        ${Object.entries(gateway.urls).map(([name, url]) => html`<dt key=${name}>${name}</dt><dd class="mono">${url}</dd>`)}
      </dl>
    </section>`;
}

// The phases of a request as a bar, and as a table for everybody.
import { html } from "../../../ui.js";
import { formatNumber } from "../../../format.js";

const MEANINGS = {
  auth: "signature, policies",
  index: "rows of the index",
  open: "opening the data",
  write: "writing the body",
  sync: "making it durable",
  commit: "the index transaction",
  read: "reading the body",
};
const COLORS = 8;

/** Shows where the time went. Phases may overlap; what none of them covers is `rest`: parsing, waiting, sending. */
export function Phases({ total, phases }) {
  const named = Object.entries(phases).map(([name, ms], index) => ({ name, ms, color: index % COLORS }));
  const rest = total - named.reduce((sum, one) => sum + one.ms, 0);
  const all = rest > 0 ? [...named, { name: "rest", ms: rest, color: COLORS - 1 }] : named;
  const whole = Math.max(total, all.reduce((sum, one) => sum + one.ms, 0)) || 1;
  return html`
    <section class="stack tight">
      <h3>${formatNumber(total)} ms</h3>
      <div class="phase-bar" aria-hidden="true">
        ${all.map((one) => html`<span key=${one.name} class="phase phase-${one.color}" style=${{ width: `${(one.ms / whole) * 100}%` }}></span>`)}
      </div>
      <table class="phase-table">
        <caption class="screen-reader">Phases of the request</caption>
        <thead><tr><th scope="col">Phase</th><th scope="col" class="number">ms</th><th scope="col" class="wide-only">What it is</th></tr></thead>
        <tbody>${all.map((one) => html`
          <tr key=${one.name}><td><span class="phase-dot phase-${one.color}" aria-hidden="true"></span> ${one.name}</td>
            <td class="number">${formatNumber(one.ms)}</td>
            <td class="quiet wide-only">${MEANINGS[one.name] ?? "parsing, waiting, sending"}</td></tr>`)}</tbody>
      </table>
    </section>`;
}

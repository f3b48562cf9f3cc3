// A load test that has ended: the verdict in sentences, then the report.
import { html } from "../../ui.js";
import { Time } from "../../components/values.js";
import { formatPlural, formatSeconds } from "../../format.js";
import { capitalise, scenarioLabel, StateBadge } from "./words.js";

/** Shows the verdict first. The report is a page of its own that may run nothing: it stands in a frame. */
export function Result({ loadTest }) {
  const { id, state, reason, report, headline } = loadTest;
  return html`
    <div class="stack">
      ${state !== "complete" && html`<p class=${`note ${state === "failed" ? "bad" : "warn"}`}><${StateBadge} state=${state} /> ${explain(state, reason, report)}</p>`}
      ${headline.length > 0 && html`
        <section aria-label="Verdict" class="verdict">${headline.map((line) => html`<p key=${line}>${line}</p>`)}</section>`}
      <${Facts} loadTest=${loadTest} />
      <${OthersThen} others=${loadTest.others} />
      ${report && html`<iframe class="report" title="Report of the load test" sandbox="" src=${`/api/v1/load-tests/${id}/report`}></iframe>`}
    </div>`;
}

function explain(state, reason, report) {
  const why = reason ? `${capitalise(reason)}. ` : "";
  if (state === "failed") return `${why}Nothing was measured.`;
  return `${why}${report ? "The report has what was measured until then." : ""}`;
}

function Facts({ loadTest }) {
  const { started, ended, repeats, scenarios, durability, direct, by } = loadTest;
  const load = scenarios.map(scenarioLabel).join(", ");
  return html`
    <dl class="facts small">
      <dt>When</dt><dd><${Time} value=${started} />${ended && `, for ${formatSeconds(Math.round((ended - started) / 1000))}`}</dd>
      <dt>Load</dt><dd>${load}; ${formatPlural(repeats, "repeat")}${direct ? "; plain files too" : ""}${durability === "full" ? "" : `; durability ${durability}`}</dd>
      <dt>Started by</dt><dd>${by || "–"}</dd>
    </dl>`;
}

function OthersThen({ others }) {
  if (!(others.most >= 1)) return null;
  return html`
    <p class="note warn">While it ran, this gateway answered ${others.mean} requests a second of others on average, ${others.most} at most: they
      share the machine, so its figures are lower and noisier than those of an idle one.</p>`;
}

import { html } from "../../ui.js";
import { formatCount, formatPlural, formatSeconds } from "../../format.js";
import { Badge, Bytes, Copy, Time } from "../../components/values.js";
import { ConditionBadge } from "./condition.js";
import { Part } from "./part.js";

/** What is known of a store beyond its card: the probe's findings, packs, journals, scrub, the breaker's history. */
export function Details({ store }) {
  return html`
    <div class="store-details">
      <${Section} title="Mount"><${Mount} store=${store} /><//>
      ${store.packs && html`<${Section} title="Packs"><${Part} part=${store.packs} what="The index">${(packs) => html`<${Packs} packs=${packs} />`}<//><//>`}
      <${Section} title="Journals"><${Part} part=${store.journals} what="The index">${(journals) => html`<${Journals} journals=${journals} />`}<//><//>
      <${Section} title="Scrub"><${Part} part=${store.scrub} what="The index">${(scrub) => html`<${Scrub} scrub=${scrub} />`}<//><//>
      <${Section} title="Circuit breaker"><${Breaker} breaker=${store.breaker} /><//>
    </div>`;
}

function Section({ title, children }) {
  return html`<section class="stack tight" aria-label=${title}><h3>${title}</h3>${children}</section>`;
}

function Facts({ facts }) {
  const known = facts.filter(([, value]) => value !== null && value !== "");
  return html`<dl class="facts small">${known.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Mount({ store }) {
  const { mount } = store;
  if (!mount) return html`<p class="quiet small">The store was not in service here since the last start, so that nothing is known of its mount.</p>`;
  const calls = mount.latencies.map((one) => `${one.call} ${formatSeconds(one.median)}`).join(" · ");
  return html`
    <${Facts} facts=${[
      ["File system", mount.kind], ["Device", mount.device], ["Mount point", mount.point && html`<span class="mono">${mount.point}</span>`],
      ["Options", mount.options && html`<span class="mono">${mount.options}</span>`], ["Place", html`<span class="mono">${store.place}</span>`],
      ["Counts as hanging", `after ${formatSeconds(store.hang_timeout)}`],
      ["Calls at the start", calls],
    ]} />
    <ul class="row trials" aria-label="What the probe found at the last start">${mount.trials.map((trial) => html`
      <li key=${trial.name}><${Trial} trial=${trial} /></li>`)}</ul>`;
}

function Trial({ trial }) {
  if (trial.works === null) return html`<${Badge} title=${trial.detail}>? ${trial.name}, not tried<//>`;
  if (trial.works) return html`<${Badge} kind="good" title=${trial.detail}>✓ ${trial.name}<//>`;
  return html`<${Badge} kind="warn" title=${trial.detail}>lacks ${trial.name}<//>`;
}

function Packs({ packs }) {
  const total = packs.live_bytes + packs.dead_bytes;
  const share = total ? Math.round((packs.dead_bytes / total) * 100) : 0;
  const rate = packs.compaction_rate ? html`at most <${Bytes} value=${packs.compaction_rate} /> a second` : "turned off (SLUICE_COMPACTION_RATE=0)";
  return html`
    ${total > 0 && html`<div class="packs" role="img" aria-label=${`${share} % of the packs' bytes are dead`}>
      <i class="live" style=${{ flexGrow: packs.live_bytes }}></i><i class="dead" style=${{ flexGrow: packs.dead_bytes }}></i></div>`}
    <${Facts} facts=${[
      ["Packs", `${formatCount(packs.sealed)} closed, ${formatCount(packs.open)} being written`],
      ["Live", html`<${Bytes} value=${packs.live_bytes} />`],
      ["Dead", html`<${Bytes} value=${packs.dead_bytes} />${total > 0 && ` (${share} %)`}`],
      ["Compaction", html`${packs.worthwhile ? `${formatPlural(packs.worthwhile, "pack")} to go through, ` : "nothing to do, "}${rate}`],
    ]} />`;
}

function Journals({ journals }) {
  const behind = journals.behind_changes
    ? `${formatPlural(journals.behind_changes, "change")}, the oldest for ${formatSeconds(journals.behind_seconds)}`
    : "nothing: every change is written down";
  return html`
    ${journals.failing && html`<p class="note bad small">They cannot be written: ${journals.failing}. The store takes no changes.</p>`}
    <${Facts} facts=${[["Written", "about every second"], ["Waits", behind], ["Files", html`${formatCount(journals.files)}, <${Bytes} value=${journals.bytes} />`]]} />
    <p class="small quiet">What a lost index would lose is what still waits here: the window of the journals.</p>`;
}

function Scrub({ scrub }) {
  if (!scrub.rate && !scrub.began) return html`<p class="small quiet">Turned off (SLUICE_SCRUB_RATE=0). <code>sluice scrub</code> reads everything once.</p>`;
  const doing = scrub.running
    ? html`reads ${scrub.kind} since <${Time} value=${scrub.began} />`
    : scrub.began ? html`the last pass began <${Time} value=${scrub.began} /> and is done` : "has not begun yet";
  return html`
    <${Facts} facts=${[["State", doing], ["Rate", scrub.rate ? html`at most <${Bytes} value=${scrub.rate} /> a second` : "off"]]} />
    ${scrub.share !== null && html`<progress max="1" value=${scrub.share} aria-label="Scrub of versions"></progress>
      <p class="small quiet">${Math.round(scrub.share * 100)} % of the versions</p>`}
    ${scrub.damaged === 0
      ? html`<p class="small"><${Badge} kind="good">nothing damaged<//></p>`
      : html`<${Findings} scrub=${scrub} />`}`;
}

function Findings({ scrub }) {
  return html`
    <p class="note bad small">${formatPlural(scrub.damaged, "stored body is", "stored bodies are")} damaged: reading them answers 503.
      <code>sluice scrub</code> names the objects <${Copy} text="sluice scrub" label="Copy the command" /></p>
    <ul class="small bounded">${scrub.findings.map((one) => html`
      <li key=${one.locator}><span class="mono">${one.locator}</span>: ${one.reason}, found <${Time} value=${one.found} /></li>`)}</ul>
    ${scrub.damaged > scrub.findings.length && html`<p class="small quiet">The newest ${scrub.findings.length} are shown.</p>`}`;
}

function Breaker({ breaker }) {
  const { condition, processes, of, since, reason, history } = breaker;
  const where = condition !== "up" && processes < of ? ` in ${processes} of ${of} processes` : "";
  const stuck = breaker.stuck_calls ? `, ${formatCount(breaker.stuck_calls)} of them too long` : "";
  return html`
    <${Facts} facts=${[
      ["Now", html`<${ConditionBadge} condition=${condition} />${where}${since ? html` since <${Time} value=${since} />` : ""}`],
      ["Why", reason], ["Calls running", `${formatCount(breaker.running_calls)}${stuck}`],
    ]} />
    ${history.length > 1 && html`<ol class="small bounded" aria-label="Changes">${history.map((one) => html`<${Change} key=${one.at} change=${one} />`)}</ol>`}`;
}

function Change({ change }) {
  const seen = `${change.processes} of ${change.of} processes${change.reason && `: ${change.reason}`}`;
  return html`<li><${Time} value=${change.at} /> <${ConditionBadge} condition=${change.condition} />
    ${change.condition !== "up" && html` <span class="quiet">${seen}</span>`}</li>`;
}

// Two load tests side by side: how the later one differs, and what of that is more than noise.
import { html } from "../../ui.js";
import { callApi } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Badge, Time } from "../../components/values.js";
import { useResource } from "../../resource.js";
import { pathTo } from "../../router.js";
import { capitalise, ROOM, titleOf } from "./words.js";

const CALLS = { faster: ["good", "faster"], slower: ["bad", "slower"], "no difference": ["", "no difference"], "too noisy": ["warn", "too noisy to call"] };

/** Shows how load test `b` differs from `a`. */
export function ComparisonPage({ query }) {
  const [a, b] = ["a", "b"].map((side) => query.get(side) ?? "");
  const found = useResource(async (signal) => {
    const load = (id) => callApi("GET", `load-tests/${encodeURIComponent(id)}`, { signal });
    const [comparison, first, second] = await Promise.all([callApi("GET", "load-tests/comparison", { query: { a, b }, signal }), load(a), load(b)]);
    return { comparison, first, second };
  }, [a, b]);
  const crumbs = [{ label: "Load tests", href: pathTo(ROOM) }];
  return html`
    <${Page} title="Two load tests compared" crumbs=${crumbs}>
      <div class="stack">
        <${ErrorNote} error=${found.error} retry=${found.reload} />
        ${!found.data && !found.error && html`<p class="quiet" aria-busy="true">Reading the figures of both…</p>`}
        ${found.data && html`<${Comparison} ...${found.data} />`}
      </div>
    <//>`;
}

function Comparison({ comparison, first, second }) {
  const targets = [...new Set(comparison.pairs.map((pair) => pair.target))];
  return html`
    <div class="grid"><${Side} name="A" loadTest=${first} /><${Side} name="B" loadTest=${second} /></div>
    ${comparison.remarks.map((text) => html`<p class="note" key=${text}>${capitalise(text)}.</p>`)}
    ${targets.map((target) => html`<${Target} key=${target} target=${target} pairs=${comparison.pairs.filter((pair) => pair.target === target)} />`)}
    <p class="quiet small">Speed of B against A with 99 % intervals over the repeats. Less than 5 % is no difference.</p>`;
}

function Side({ name, loadTest }) {
  return html`
    <section class="card stack tight" aria-label=${name}>
      <p class="row"><${Badge} kind="accent">${name}<//><a href=${pathTo([...ROOM, loadTest.id])}>${titleOf(loadTest)}</a></p>
      <p class="quiet small"><${Time} value=${loadTest.started} /></p>
      ${loadTest.headline.slice(0, 3).map((line) => html`<p key=${line}>${line}</p>`)}
    </section>`;
}

function Target({ target, pairs }) {
  return html`
    <section class="stack tight">
      <h2>${target}</h2>
      <div class="scroll" tabindex="0" role="group" aria-label=${`Figures of ${target}`}>
        <table class="pairs">
          <thead><tr><th scope="col">Figure</th><th scope="col" class="number">A</th><th scope="col" class="number">B</th>
            <th scope="col" class="number">B against A</th><th scope="col">B is</th></tr></thead>
          <tbody>${pairs.map((pair) => html`
            <tr key=${pair.use + pair.figure} class=${pair.figure ? "" : "use"}>
              <th scope="row">${pair.figure || pair.use}</th><td class="number">${pair.a}</td><td class="number">${pair.b}</td>
              <td class="number nowrap">${renderRatio(pair.over)}</td><td><${Call} call=${pair.over.call} /></td>
            </tr>`)}</tbody>
        </table>
      </div>
    </section>`;
}

function Call({ call }) {
  const [kind, label] = CALLS[call] ?? ["", call];
  return html`<${Badge} kind=${kind}>${label}<//>`;
}

function renderRatio({ ratio, low, high }) {
  if (ratio === null) return "";
  const interval = low === null || high === null ? "" : ` (${percent(low)} to ${percent(high)} %)`;
  return `${percent(ratio)} %${interval}`;
}

function percent(ratio) {
  const value = (ratio - 1) * 100;
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(Math.abs(value) < 10 ? 1 : 0)}`;
}

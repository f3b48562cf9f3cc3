// The load tests that are kept, and the way to a new one and to a comparison of two.
import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { DataTable } from "../../components/data-table.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty, Page } from "../../components/page.js";
import { Bytes, Time } from "../../components/values.js";
import { formatBytes, formatPlural, formatSeconds } from "../../format.js";
import { useResource } from "../../resource.js";
import { pathTo } from "../../router.js";
import { may } from "../../session.js";
import { capitalise, NotInstalled, ROOM, scenarioLabel, StateBadge, titleOf } from "./words.js";

/** Shows the history, or what a load test is for when there is none. */
export function HistoryPage() {
  const history = useResource((signal) => callApi("GET", "load-tests", { signal }), []);
  const [chosen, setChosen] = useState([]);
  const { data } = history;
  const installed = data?.installed !== false;
  const toggle = (id) => setChosen((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before, id].slice(-2)));
  const actions = html`
    ${data?.load_tests.length > 1 && html`<${CompareButton} chosen=${chosen} />`}
    ${may("sluice:RunLoadTest") && installed && html`<${Button} kind="primary" icon="plus" href=${pathTo([...ROOM, "new"])}>New load test<//>`}`;
  return html`
    <${Page} title="Load tests" actions=${actions}>
      <div class="stack">
        <${ErrorNote} error=${history.error} retry=${history.reload} />
        ${!installed && html`<${NotInstalled} command=${data.install} />`}
        ${data && (data.load_tests.length ? html`
          <${HistoryTable} rows=${data.load_tests} chosen=${chosen} toggle=${toggle} />
          <p class="quiet small">${formatPlural(data.load_tests.length, "load test")}, ${formatBytes(data.bytes)}. The newest ${data.kept} are
            kept. Choose two to compare them.</p>` : installed && html`<${Teaching} />`)}
      </div>
    <//>`;
}

function CompareButton({ chosen }) {
  const [a, b] = [...chosen].sort(); // an id begins with its time: the older one is A
  return html`<${Button} disabled=${chosen.length !== 2} why="Choose two in the table" href=${pathTo([...ROOM, "compare"], { a, b })}>Compare two<//>`;
}

function HistoryTable({ rows, chosen, toggle }) {
  const columns = [
    { name: "chosen", label: "", render: (row) => html`<input type="checkbox" aria-label=${`Choose ${row.id}`} checked=${chosen.includes(row.id)}
      disabled=${!row.report} onChange=${() => toggle(row.id)} />` },
    { name: "targets", label: "Compared", sort: (row) => row.started, render: renderTitle },
    { name: "verdict", label: "Verdict", render: renderVerdict },
    { name: "scenarios", label: "Load", wideOnly: true, render: (row) => row.scenarios.map(scenarioLabel).join(", ") },
    { name: "took", label: "Took", number: true, wideOnly: true, sort: took, render: (row) => (row.ended ? formatSeconds(Math.round(took(row))) : "–") },
    { name: "bytes", label: "Size", number: true, wideOnly: true, sort: (row) => row.bytes, render: (row) => html`<${Bytes} value=${row.bytes} />` },
  ];
  return html`<${DataTable} caption="Load tests" columns=${columns} rows=${rows} rowKey=${(row) => row.id} selected=${(row) => chosen.includes(row.id)} />`;
}

function renderTitle(row) {
  return html`<a href=${pathTo([...ROOM, row.id])}>${titleOf(row)}</a><div class="quiet small"><${Time} value=${row.started} /></div>`;
}

function took(row) {
  return row.ended ? (row.ended - row.started) / 1000 : 0;
}

function renderVerdict(row) {
  if (row.state === "complete") return row.headline[0] ?? "";
  return html`<${StateBadge} state=${row.state} /> ${row.headline[0] ?? capitalise(row.reason)}`;
}

function Teaching() {
  return html`
    <${Empty} title="Which disk is faster for your load?" action=${may("sluice:RunLoadTest") ? "Choose what to compare" : undefined}
      href=${pathTo([...ROOM, "new"])}>
      A load test plays the same requests on two or more disks in turns – on the disks of your stores, and on what the setting
      <code> SLUICE_BENCH_TARGETS</code> lists – and says which one to take for what, and how sure that is. It starts a gateway of its
      own in an empty directory there: no object of yours is read or written.
    <//>`;
}

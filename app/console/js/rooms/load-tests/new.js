// A new load test: what to compare, with which load, for how long; and what that would do.
import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { Duration } from "./duration.js";
import { Preview } from "./preview.js";
import { Scenarios } from "./scenarios.js";
import { Targets } from "./targets.js";
import { NotInstalled, OthersNote, ROOM } from "./words.js";

const MINUTES = 5;

/** Shows the form. `query` fills it in: targets, scenarios, minutes, direct, durability. */
export function NewPage({ query }) {
  const targets = useResource((signal) => callApi("GET", "load-tests/targets", { signal }), []);
  const scenarios = useResource((signal) => callApi("GET", "load-tests/scenarios", { signal }), []);
  const waits = (targets.loading && !targets.data) || (targets.data?.installed && scenarios.loading && !scenarios.data);
  const crumbs = [{ label: "Load tests", href: pathTo(ROOM) }];
  return html`
    <${Page} title="New load test" crumbs=${crumbs}>
      <${ErrorNote} error=${targets.error ?? scenarios.error} retry=${() => (targets.reload(), scenarios.reload())} />
      ${waits && html`<p role="status">Looking for stores and loads…</p>`}
      ${targets.data && !targets.data.installed && html`<${NotInstalled} command=${targets.data.install} />`}
      ${targets.data?.installed && scenarios.data && html`<${Form} query=${query} found=${targets.data} scenarios=${scenarios.data} reload=${targets.reload} />`}
    <//>`;
}

function Form({ query, found, scenarios, reload }) {
  const [asked, setAsked] = useState(() => firstChoice(query, found.targets, scenarios));
  const change = (part) => setAsked((before) => ({ ...before, ...part }));
  const valid = asked.targets.length > 0 && asked.scenarios.length > 0 && asked.minutes >= 0.1 && asked.minutes <= 240;
  const preview = useResource((signal) => (valid ? lookAhead(asked, signal) : Promise.resolve(null)), [JSON.stringify(asked)]);
  const [start, starting] = useAction(async () => {
    const made = await callApi("POST", "load-tests", { body: asked });
    navigate(pathTo([...ROOM, made.id]));
  });
  const ready = valid && preview.data && !preview.loading && preview.data.problems.length === 0 && !found.running;
  const submit = (event) => {
    event.preventDefault();
    if (ready) start();
  };
  return html`
    <form class="load-test-form" onSubmit=${submit}>
      <div class="stack">
        <${Targets} targets=${found.targets} chosen=${asked.targets} onChange=${(names) => change({ targets: names })} reload=${reload} />
        <${Scenarios} scenarios=${scenarios} chosen=${asked.scenarios} onChange=${(names) => change({ scenarios: names })} />
        <${Duration} asked=${asked} change=${change} />
      </div>
      <aside class="stack card" aria-label="What it will do">
        <h2>What it will do</h2>
        <${Preview} asked=${asked} valid=${valid} preview=${preview} />
        <${OthersNote} perSecond=${found.others_per_second} since="answers" />
        ${found.running && html`<p class="note warn"><a href=${pathTo([...ROOM, found.running])}>Another load test</a> is running. Wait for its end.</p>`}
        <${ErrorNote} error=${starting.error} />
        <${Button} kind="primary" icon="play" type="submit" busy=${starting.busy} disabled=${!ready} why="See above what is missing">Start<//>
      </aside>
    </form>`;
}

function firstChoice(query, targets, scenarios) {
  const named = (name) => (query.get(name) ?? "").split(",").filter(Boolean);
  const usable = targets.filter((one) => !one.problem).map((one) => one.name);
  const known = scenarios.map((one) => one.name);
  const loads = named("scenarios").filter((name) => known.includes(name));
  return {
    targets: named("targets").filter((name) => usable.includes(name)),
    scenarios: loads.length ? loads : scenarios.filter((one) => one.default).map((one) => one.name),
    minutes: Number(query.get("minutes")) || MINUTES,
    direct: query.get("direct") === "yes",
    durability: query.get("durability") === "relaxed" ? "relaxed" : "full",
  };
}

const PAUSE_MS = 400;

async function lookAhead(asked, signal) {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  if (signal.aborted) return null;
  return callApi("POST", "load-tests/preview", { body: asked, signal });
}

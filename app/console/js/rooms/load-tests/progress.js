// A load test that runs: what is measured now, for how long still, and the figures of the last second.
import { html, useEffect, useRef, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { formatBytes, formatNumber, formatSeconds } from "../../format.js";
import { useLive } from "../../live.js";
import { Course } from "./course.js";
import { formatAbout, nameScenario, OthersNote } from "./words.js";

const PHASES = {
  starting: "Starting", preparing: "Getting ready", measuring: "Measuring", judging: "Writing the report",
  ending: "Ending: what was measured is kept", ended: "Ended",
};
const MAX_POINTS = 900;

/** Follows a load test by its events; `onEnd` is called once when it has ended. */
export function Progress({ loadTest, onEnd }) {
  const [state, setState] = useState(null);
  const [points, setPoints] = useState([]);
  const over = useRef(false);
  const take = (progress) => {
    setState(progress);
    if (progress.live) setPoints((before) => [...before, { at: progress.elapsed, target: progress.target, ...progress.live }].slice(-MAX_POINTS));
    if (progress.phase === "ended" && !over.current) {
      over.current = true;
      onEnd();
    }
  };
  const connection = useLive(over.current ? null : `load-tests/${loadTest.id}`, { course: setPoints, progress: take });
  useEffect(() => {
    // a stream does not say why it was refused: if the session has ended, this does
    if (connection === "waiting") callApi("GET", `load-tests/${loadTest.id}`).catch(() => {});
  }, [connection]);
  if (!state) return html`<p class="quiet" aria-busy="true">${connection === "waiting" ? "The gateway does not answer; the load test may go on." : "Connecting…"}</p>`;
  return html`
    <div class="stack">
      <${Now} state=${state} waiting=${connection === "waiting"} />
      ${state.total === 0 && html`<p class="note">It runs on another gateway, or ends after a restart of this one.</p>`}
      <${Figures} live=${state.live} />
      <${Course} points=${points} targets=${loadTest.targets} seconds=${state.elapsed + state.left} />
      <${OthersNote} perSecond=${state.others_per_second} since="answers" />
      <${Messages} messages=${state.messages} />
    </div>`;
}

function Now({ state, waiting }) {
  const share = state.elapsed / Math.max(1, state.elapsed + state.left);
  const left = state.phase === "judging" || state.phase === "ending" ? "" : `about ${formatAbout(state.left)} left`;
  return html`
    <div class="stack tight">
      <p class="row"><strong>${PHASES[state.phase]}</strong>${state.what && html`<span>${nameScenario(state.what)}</span>`}<span class="grow"></span>
        <span class="quiet number">${formatSeconds(Math.round(state.elapsed))}${left && ` · ${left}`}</span></p>
      <progress aria-label="Progress of the load test" max="1" value=${share}></progress>
      <p class="screen-reader" role="status">${PHASES[state.phase]} ${nameScenario(state.what)}</p>
      ${waiting && html`<p class="note warn">The gateway does not answer. The load test may go on; this page tries again.</p>`}
    </div>`;
}

function Figures({ live }) {
  const shown = [
    ["Requests a second", live && formatNumber(live.requests)],
    ["Bytes a second", live && formatBytes(Math.round(live.bytes))],
    ["Median", live && formatSeconds(live.p50)],
    ["99 % within", live && formatSeconds(live.p99)],
    ["Errors a second", live && formatNumber(live.errors)],
  ];
  return html`<dl class="live-figures">${shown.map(([label, value]) => html`<div key=${label} class="card"><dt>${label}</dt><dd>${value || "–"}</dd></div>`)}</dl>`;
}

function Messages({ messages }) {
  if (!messages.length) return null;
  return html`
    <section aria-label="What has been measured" class="stack tight">
      <h2>Measured so far</h2>
      <ol class="messages small">${[...messages].reverse().map((text, number) => html`<li key=${messages.length - number}>${nameScenario(text)}</li>`)}</ol>
    </section>`;
}

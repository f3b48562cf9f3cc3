import { html } from "../../ui.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Icon } from "../../components/icon.js";
import { Time } from "../../components/values.js";
import { useResource } from "../../resource.js";
import { Evaluation } from "../simulator/evaluation.js";
import { loadSimulatorStyle } from "../simulator/style.js";
import { loadFacts } from "./version-facts.js";
import { explainDeletion } from "./why-not.js";

const ICONS = { good: "check", warn: "warn", bad: "lock" };
const WORDS = { good: "In order: ", warn: "Note: ", bad: "In the way: " };

/** Says what keeps a version from being deleted, or that nothing does. */
export function WhyDialog({ bucket, version, onClose }) {
  const { data, error, reload } = useResource(async (signal) => {
    const [facts] = await Promise.all([loadFacts(bucket, version, signal), loadSimulatorStyle()]);
    return explainDeletion(bucket, version, facts, signal);
  }, [version.id]);
  const blocked = data?.some((one) => one.state === "bad");
  const warned = data?.some((one) => one.state === "warn");
  return html`
    <${Dialog} title="Why can this version not be deleted?" onClose=${onClose} wide>
      <${ErrorNote} error=${error} retry=${reload} />
      ${!data && !error && html`<p role="status" class="quiet">Asking S3 and the simulator…</p>`}
      ${data && html`
        <p class=${blocked ? "note bad" : warned ? "note warn" : "note good"} role="status">${summaryOf(blocked, warned)}</p>
        <ul class="reasons">${data.map((one) => html`<${Reason} key=${one.title} ...${one} />`)}</ul>`}
    <//>`;
}

function summaryOf(blocked, warned) {
  if (blocked) return "You cannot delete it now: see what is marked below.";
  return warned ? "You can delete it, if you attend to the note below." : "Nothing keeps you from deleting it.";
}

function Reason({ state, title, until, text, simulation }) {
  return html`
    <li class="reason ${state}">
      <${Icon} name=${ICONS[state]} />
      <div class="grow stack tight">
        <strong><span class="screen-reader">${WORDS[state]}</span>${title}${until && html` until <${Time} value=${until} />`}</strong>
        ${text && html`<span>${text}</span>`}
        ${simulation && html`<details><summary>How that was decided</summary><${Evaluation} answer=${simulation} /></details>`}
      </div>
    </li>`;
}

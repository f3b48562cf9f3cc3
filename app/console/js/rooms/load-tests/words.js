// Words that the pages of this room share.
import { html } from "../../ui.js";
import { Badge, Copy } from "../../components/values.js";
import { Empty } from "../../components/page.js";
import { pathTo } from "../../router.js";

export const ROOM = ["load-tests"];

const STATES = { running: ["accent", "running"], complete: ["good", "complete"], partial: ["warn", "partial"], failed: ["bad", "failed"] };

/** The state of a load test as a badge. */
export function StateBadge({ state }) {
  const [kind, label] = STATES[state] ?? ["", state];
  return html`<${Badge} kind=${kind}>${label}<//>`;
}

/** Returns the title of a load test: the names of what it compares. */
export function titleOf(loadTest) {
  const names = loadTest.targets;
  return names.length < 2 ? `Load test of ${names.join("")}` : `${names.slice(0, -1).join(", ")} and ${names.at(-1)} compared`;
}

const LABELS = {
  mixed: "Mixed load", small_files: "Small files", threads: "Concurrency", stat_delete_list: "Listing & metadata",
  open_loop: "Fixed rate", boto3_mixed: "Mixed load by boto3", saturation: "Clients until it is full",
};

/** Returns a scenario's name as people read it. */
export function scenarioLabel(name) {
  const words = LABELS[name] ?? name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** Returns a text such as "efs: small_files (1 of 5)" with the scenario's label in it. */
export function nameScenario(text) {
  return text.replace(/: (\w+) \(/, (_, name) => `: ${scenarioLabel(name)} (`);
}

/** Returns a text as a sentence begins. */
export function capitalise(text) {
  return text && text[0].toUpperCase() + text.slice(1);
}

/** Returns an estimate of a time: "5 min", "1 h 10 min", "40 s". */
export function formatAbout(seconds) {
  if (seconds < 55) return `${Math.max(1, Math.round(seconds / 5) * 5)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns the path of a new load test that is filled in as an earlier one. */
export function againPath(loadTest) {
  return pathTo([...ROOM, "new"], {
    targets: loadTest.targets.join(","), scenarios: loadTest.scenarios.join(","), minutes: loadTest.minutes,
    direct: loadTest.direct ? "yes" : "", durability: loadTest.durability === "full" ? "" : loadTest.durability,
  });
}

/** What stands in this room when the load tests are not installed. */
export function NotInstalled({ command }) {
  return html`
    <${Empty} title="Load tests are not installed here">
      They need Locust. Install it where this gateway is installed, and restart the gateway:
      <div class="row centred"><code>${command}</code><${Copy} text=${command} label="Copy the command" /></div>
    <//>`;
}

/** Says how many requests of others the gateway answers, and what that means. Nothing when there are few. */
export function OthersNote({ perSecond, since }) {
  if (!(perSecond >= 1)) return null;
  return html`
    <p class="note warn">This gateway ${since} ${perSecond.toFixed(perSecond < 10 ? 1 : 0)} requests a second of others. A load test slows
      them down, and they blur its figures.</p>`;
}

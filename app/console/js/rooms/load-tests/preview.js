// What a load test would do, as the gateway has worked it out.
import { html } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { formatBytes, formatPlural } from "../../format.js";
import { capitalise, formatAbout } from "./words.js";

/** The plan in sentences, what forbids it, and what to doubt. It stays while a newer one is worked out. */
export function Preview({ asked, valid, preview }) {
  if (!valid) return html`<p class="quiet">${missing(asked)}</p>`;
  if (preview.error && !preview.loading) return html`<${ErrorNote} error=${preview.error} />`;
  if (!preview.data) return html`<p class="quiet" aria-busy="true">Looking at the disks…</p>`;
  return html`<div class=${preview.loading ? "stack tight quiet" : "stack tight"} aria-busy=${String(preview.loading)}><${Plan} asked=${asked} found=${preview.data} /></div>`;
}

function missing(asked) {
  if (!asked.targets.length) return "Choose two disks or more to compare; one alone gives figures without a verdict.";
  if (!asked.scenarios.length) return "Choose at least one load.";
  return "Say how many minutes it may take.";
}

function Plan({ asked, found }) {
  const written = found.places.filter((place) => place.needed);
  const needed = Math.max(0, ...written.map((place) => place.needed));
  return html`
    <p><strong>About ${formatAbout(found.seconds)}.</strong> ${formatPlural(asked.scenarios.length, "load")} on
      ${" "}${formatPlural(asked.targets.length, "target")}, in turns, ${formatPlural(found.repeats, "time")}.</p>
    ${written.length > 0 && html`<p>Up to ${formatBytes(needed)} at a time are written to ${written.map((place) => place.name).join(", ")}, in a new directory that is removed again.</p>`}
    ${found.places.some((place) => place.kind === "endpoint") && html`<p>On an S3 endpoint it makes buckets <code>sluice-bench-…</code> and removes them.</p>`}
    ${asked.targets.length === 1 && html`<p class="note">With one target there are figures, but nothing to compare them with.</p>`}
    ${found.problems.map((text) => html`<p class="note bad" key=${text}>${text}</p>`)}
    ${found.warnings.map((text) => html`<p class="note warn" key=${text}>${capitalise(text)}.</p>`)}`;
}

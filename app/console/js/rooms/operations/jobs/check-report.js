// What the last check of index and stores found.
import { html } from "../../../ui.js";
import { Time } from "../../../components/values.js";
import { formatBytes, formatPlural } from "../../../format.js";

const FINDINGS = {
  missing: ["bad", "rows whose data is missing", "Restore these objects from a backup."],
  short: ["bad", "rows whose data is too short", "Restore these objects from a backup."],
  miscounted: ["bad", "wrong reference counts", "Run sluice fsck on the host for the details."],
  overcounted: ["warn", "packs with too many bytes counted dead", "sluice fsck --repair counts them again."],
  newest: ["warn", "keys without exactly one newest version", "sluice fsck --repair mends them."],
  orphans: ["warn", "pieces of data that no row holds", "sluice fsck --repair puts them into quarantine for a week."],
  unaccounted: ["", "pieces of data that are kept although no row holds them", "The journals name them; nothing is to be done."],
};

/** Shows the numbers, and each kind of finding with what to do. */
export function CheckReport({ job }) {
  const { report } = job;
  const found = Object.entries(report.found);
  return html`
    <section class="card stack tight" aria-label="Report of the check">
      <h2>Check of <${Time} value=${job.ended} /></h2>
      <p>${formatPlural(report.rows, "row")}, ${formatPlural(report.blobs, "blob")}, ${formatBytes(report.bytes)}.
        ${found.length === 0 && " Index and data agree."}</p>
      ${found.map(([name, count]) => renderFinding(name, count, report.first[name]))}
    </section>`;
}

function renderFinding(name, count, first) {
  const [kind, label, advice] = FINDINGS[name] ?? ["warn", name, ""];
  return html`
    <div class="note ${kind}" key=${name}>
      <p><strong>${formatPlural(count, label, label)}</strong>: ${advice}</p>
      <details><summary>The first of them</summary><pre>${first.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n")}</pre></details>
    </div>`;
}

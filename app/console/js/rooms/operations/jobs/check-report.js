// What the last checks found: of index and stores, and of what a rebuild would restore.
import { html } from "../../../ui.js";
import { Time } from "../../../components/values.js";
import { formatBytes, formatCount, formatPlural } from "../../../format.js";

const FINDINGS = {
  missing: ["bad", "rows whose data is missing", "Restore these objects from a backup."],
  short: ["bad", "rows whose data is too short", "Restore these objects from a backup."],
  miscounted: ["bad", "wrong reference counts", "Run sluice fsck on the host for the details."],
  overcounted: ["warn", "packs with too many bytes counted dead", "sluice fsck --repair counts them again."],
  newest: ["warn", "keys without exactly one newest version", "sluice fsck --repair mends them."],
  orphans: ["warn", "pieces of data that no row holds", "sluice fsck --repair puts them into quarantine for a week."],
  unaccounted: ["", "pieces of data that are kept although no row holds them", "The journals name them; nothing is to be done."],
  damage: ["bad", "journals or packs that cannot be read", "A rebuild would lack what only they name. Run it again, then make a backup while there is an index."],
  not_restored: ["warn", "writes that a rebuild would leave out", "What was decided about them stands in no journal yet: run it again when nothing is written."],
};

/** Shows the numbers, and each kind of finding with what to do. */
export function CheckReport({ job }) {
  const { report } = job;
  const found = Object.entries(report.found);
  return html`
    <section class="card stack tight" aria-label="Report: ${job.label}">
      <h2>${job.label} of <${Time} value=${job.ended} /></h2>
      <p>${(job.name === "rebuild" ? sayRebuild : sayCheck)(report, found.length === 0)}</p>
      ${found.map(([name, count]) => renderFinding(name, count, report.first[name]))}
    </section>`;
}

function sayCheck(report, agrees) {
  return `${formatPlural(report.rows, "row")}, ${formatPlural(report.blobs, "blob")}, ${formatBytes(report.bytes)}.${agrees ? " Index and data agree." : ""}`;
}

function sayRebuild(report, isWhole) {
  const all = `${formatPlural(report.buckets, "bucket")}, ${formatPlural(report.versions, "version")}, ${formatPlural(report.accounts, "account")}`;
  const late = report.restored_claims ? `, ${formatCount(report.restored_claims)} of them from writes that no journal has yet` : "";
  return `If the index were lost, a rebuild would restore ${all}${late}.${isWhole ? " Nothing would be left out." : ""}`;
}

function renderFinding(name, count, first) {
  const [kind, label, advice] = FINDINGS[name] ?? ["warn", name, ""];
  return html`
    <div class="note ${kind}" key=${name}>
      <p><strong>${formatPlural(count, label, label)}</strong>: ${advice}</p>
      <details><summary>The first of them</summary><pre>${first.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n")}</pre></details>
    </div>`;
}

// Background jobs: what they do, when they ran, and what can be asked of them.
import { html, useEffect } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { DataTable } from "../../../components/data-table.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Badge, Time } from "../../../components/values.js";
import { formatCount, formatPlural, formatSeconds } from "../../../format.js";
import { useResource } from "../../../resource.js";
import { may } from "../../../session.js";
import { JobActions } from "./job-actions.js";
import { CheckReport } from "./check-report.js";

const POLL_MS = 2000;
const STATES = { running: ["accent", "Running"], idle: ["", "Idle"], paused: ["warn", "Paused"], waiting: ["accent", "Waiting"] };

/** Shows all jobs of the cluster, asked for again every two seconds. */
export function JobsPage() {
  const { data, error, reload } = useResource((signal) => callApi("GET", "jobs", { signal }), []);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  const checks = data?.filter((job) => job.report) ?? [];
  return html`
    <div class="stack">
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && html`<${DataTable} caption="Background jobs" columns=${columns(reload)} rows=${data} rowKey=${(job) => job.name} />`}
      ${checks.map((job) => html`<${CheckReport} key=${job.name} job=${job} />`)}
      ${data && html`<p class="quiet small">A job runs in one gateway at a time. A paused job stays paused after a restart, in all gateways.</p>`}
    </div>`;
}

function columns(reload) {
  return [
    { name: "label", label: "Job", sort: (job) => `${job.label} ${job.store ?? ""}`, render: renderName },
    { name: "state", label: "State", sort: (job) => job.state, render: renderState },
    { name: "schedule", label: "When", wideOnly: true, render: renderSchedule },
    { name: "ended", label: "Last run", sort: (job) => job.ended ?? job.began, wideOnly: true, render: renderRun },
    { name: "actions", label: "", render: (job) => html`<${JobActions} job=${job} done=${reload} />` },
  ];
}

function renderName(job) {
  return html`
    <div class="job-name"><strong>${job.label}</strong>${job.store && html` <${Badge}>${job.store}<//>`}
      <div class="quiet small">${job.description}</div>
      ${job.progress.map((one) => html`<${Progress} key=${one.what} progress=${one} />`)}
    </div>`;
}

function Progress({ progress: { what, done, total } }) {
  const counted = total ? `${formatCount(done)} of about ${formatCount(total)}` : done ? formatCount(done) : undefined;
  return html`
    <div class="small" title=${counted}>${what}${total ? `, ${Math.min(Math.floor((done / total) * 100), 100)} %` : done ? `, ${formatCount(done)} so far` : ""}
      <progress aria-label=${`Progress of ${what}`} value=${total ? done : undefined} max=${total || undefined}></progress></div>`;
}

function renderFindings(job) {
  if (job.findings === null || (job.findings === 0 && !job.began)) return null;
  if (job.findings === 0) return html`<div class="quiet small">nothing found</div>`;
  const badge = html`<${Badge} kind="bad">${formatPlural(job.findings, "finding")}<//>`;
  return html`<div>${job.store && may("sluice:ListStores") ? html`<a href=${`/console/stores?store=${encodeURIComponent(job.store)}`}>${badge}</a>` : badge}</div>`;
}

function renderState(job) {
  const [kind, label] = STATES[job.state];
  return html`
    <${Badge} kind=${kind}>${label}<//>
    ${job.error && html`<div><${Badge} kind="bad" title="The last run failed; it is tried again.">${job.error}<//></div>`}
    ${renderFindings(job)}`;
}

function renderSchedule(job) {
  return html`${job.schedule}${job.next && html`<div class="quiet small">next: <${Time} value=${job.next} /></div>`}`;
}

function renderRun(job) {
  if (!job.began && job.can_cancel) return html`<span class="quiet">not yet</span>`;
  if (!job.began) return html`<span class="quiet" title="Rounds in which there is nothing to do are not noted.">nothing to do so far</span>`;
  return html`
    <${Time} value=${job.began} />
    <div class="quiet small">${job.ended ? formatSeconds(job.seconds) : "since then"}${job.gateway && ` on ${job.gateway}`}</div>`;
}

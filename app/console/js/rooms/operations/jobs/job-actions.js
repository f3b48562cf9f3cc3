// The buttons of a job.
import { html } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { toast } from "../../../components/toast.js";
import { useAction } from "../../../resource.js";
import { may } from "../../../session.js";

const DONE = { run: "was asked to run", pause: "is paused", resume: "goes on", cancel: "is cancelled" };

/** Shows what may be asked of a job; `done()` is called when the gateway has heard it. */
export function JobActions({ job, done }) {
  const [ask, { busy }] = useAction(async (verb) => {
    try {
      await callApi("POST", `jobs/${encodeURIComponent(job.name)}/${verb}`);
      toast(`${nameOf(job)} ${DONE[verb]}.`);
    } catch (error) {
      toast(`${nameOf(job)}: ${error.message}`, { kind: "bad" });
    }
    done();
  });
  const button = (verb, icon, text) => html`
    <${Button} icon=${icon} busy=${busy} label=${`${text}: ${nameOf(job)}`} onClick=${() => ask(verb)}><span class="wide-only">${text}</span><//>`;
  return html`
    <div class="row nowrap job-actions">
      ${job.can_run && may("sluice:RunJob") && job.state === "idle" && button("run", "play", "Run now")}
      ${job.can_cancel && may("sluice:RunJob") && job.state === "running" && button("cancel", "close", "Cancel")}
      ${job.can_pause && may("sluice:PauseJob") && (job.state === "paused" ? button("resume", "play", "Resume") : button("pause", "pause", "Pause"))}
    </div>`;
}

function nameOf(job) {
  return job.store ? `${job.label} of ${job.store}` : job.label;
}

// What a long work of a dialog has done.
import { html } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { formatCount, formatPlural } from "../../format.js";

const SHOWN_ERRORS = 20;

/** Shows the progress of `useWork`. */
export function WorkStatus({ work, label }) {
  if (work.state === "idle") return null;
  const share = work.total ? { max: work.total, value: work.done } : {};
  return html`
    <div class="stack tight" role="status">
      ${work.state === "running" && html`<progress aria-label=${label} ...${share}></progress>`}
      <p class="small quiet">${label}: ${formatCount(work.done)}${work.total ? ` of ${formatCount(work.total)}` : ""}</p>
      <${ErrorNote} error=${work.error} />
      ${work.errors.length > 0 && html`
        <div class="note bad"><p>${formatPlural(work.errors.length, "object")} failed:</p>
          <ul class="errors">${work.errors.slice(0, SHOWN_ERRORS).map((one) => html`<li key=${one.key}><code>${one.key}</code> ${one.message || one.code}</li>`)}</ul>
          ${work.errors.length > SHOWN_ERRORS && html`<p>and ${formatCount(work.errors.length - SHOWN_ERRORS)} more</p>`}
        </div>`}
    </div>`;
}

import { html } from "../../ui.js";
import { Badge } from "../../components/values.js";
import { Evaluation } from "./evaluation.js";
import { describePolicy } from "./policy-names.js";

const KINDS = { allowed: "good", denied: "bad", depends: "warn" };
const WORDS = { allowed: "Allowed", denied: "Denied", depends: "It depends" };

/** Shows the decision, what decided, and how each statement was evaluated. */
export function Answer({ answer }) {
  return html`
    <section class="stack answer" aria-label="Answer">
      <div class="note ${KINDS[answer.decision]} stack tight">
        <h2>${WORDS[answer.decision]}</h2>
        <p>${answer.reason}</p>
        <p class="small breaks"><code>${answer.principal}</code> on <code>${answer.resource}</code></p>
      </div>
      ${answer.notes.map((note) => html`<p class="note warn" key=${note}>${note}</p>`)}
      ${answer.deciding.length > 0 && html`
        <p class="row">Decided by ${answer.deciding.map((one) => html`
          <${Badge} key=${`${one.policy.kind}${one.policy.name}${one.index}`} kind=${one.effect === "Allow" ? "good" : "bad"}>
            ${one.effect}: statement ${one.index + 1}${one.sid && ` “${one.sid}”`} of ${describePolicy(one.policy)}<//>`)}</p>`}
      <${Evaluation} answer=${answer} />
    </section>`;
}

// How the policies of an answer were evaluated, statement by statement.
import { html } from "../../ui.js";
import { Badge } from "../../components/values.js";
import { describePolicy } from "./policy-names.js";

const DECISIONS = { allow: ["good", "allows"], deny: ["bad", "denies"], silent: ["", "says nothing"] };
const OUTCOMES = {
  applies: "applies", differs: "does not apply", "not-evaluated": "was not needed: another statement had decided", depends: "depends on what is not known", "too-costly": "takes too long to evaluate",
};

/** Lists the policies that were evaluated, and the condition keys that they asked for. */
export function Evaluation({ answer }) {
  return html`
    <div class="stack evaluation">
      ${answer.policies.length === 0 && html`<p class="quiet">No policy was evaluated: there is none that concerns this request, or ownership decided.</p>`}
      ${answer.policies.map((one, index) => html`<${Policy} key=${index} found=${one} deciding=${answer.deciding} />`)}
      ${answer.conditions.length > 0 && html`<${ConditionTable} conditions=${answer.conditions} />`}
    </div>`;
}

function Policy({ found, deciding }) {
  const [kind, word] = DECISIONS[found.decision];
  const decides = (statement) => deciding.some((one) => (
    one.index === statement.index && one.policy.kind === found.policy.kind && one.policy.name === found.policy.name && one.policy.owner === found.policy.owner));
  return html`
    <section class="card stack tight">
      <div class="row"><h3 class="grow breaks">${describePolicy(found.policy)}</h3>
        ${found.policy.draft && html`<${Badge} kind="accent">Draft<//>`}<${Badge} kind=${kind}>${word}<//></div>
      ${found.alone && html`<p class="quiet small">A second look: what it allows this principal by name, not through its account.</p>`}
      ${found.statements.map((one) => html`<${Statement} key=${one.index} found=${one} open=${decides(one)} />`)}
    </section>`;
}

function Statement({ found, open }) {
  const kind = found.outcome === "applies" ? (found.effect === "Allow" ? "good" : "bad") : "";
  const parts = [...new Set(found.mismatches.map((one) => one.part))].join(", ");
  return html`
    <details class="statement" open=${open}>
      <summary><${Badge} kind=${kind}>${found.effect}<//> Statement ${found.index + 1}${found.sid && ` “${found.sid}”`} ${OUTCOMES[found.outcome]}${parts && ` (${parts})`}</summary>
      ${found.mismatches.length > 0 && html`<ul>${found.mismatches.map((one, index) => html`<li key=${index}>${one.text}</li>`)}</ul>`}
      <pre tabindex="0">${JSON.stringify(found.statement, null, 2)}</pre>
    </details>`;
}

function ConditionTable({ conditions }) {
  return html`
    <div class="scroll"><table>
      <caption class="screen-reader">Condition keys that the policies asked for</caption>
      <thead><tr><th scope="col">Condition key</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
      <tbody>${conditions.map((one) => html`
        <tr key=${one.key}><th scope="row"><code>${one.key}</code></th>
          <td class="breaks">${one.values === null ? html`<span class="quiet">absent</span>` : one.values.join(", ")}</td>
          <td>${one.given ? "your question" : "a usual request"}</td></tr>`)}</tbody>
    </table></div>`;
}

import { html } from "../../ui.js";
import { CodeEditor } from "../../components/code-editor.js";
import { Field } from "../../components/field.js";
import { policyCheck } from "./iam.js";

/** The text of a policy with templates to begin with. `kind`: identity or trust; `onProblem` as CodeEditor has it. */
export function PolicyEditor({ kind, label, value, onInput, onProblem, templates = [], readOnly }) {
  const choose = (event) => {
    const chosen = templates[Number(event.target.value)];
    const own = value.trim() && !templates.some((one) => one.document === value);
    if (chosen && (!own || window.confirm("Replace the policy that stands here?"))) onInput(chosen.document);
    event.target.value = "";
  };
  return html`
    <div class="stack tight">
      ${!readOnly && templates.length > 0 && html`
        <${Field} label="Begin with">${(control) => html`
          <select ...${control} onChange=${choose}>
            <option value="">a template…</option>
            ${templates.map((one, index) => html`<option key=${one.label} value=${index}>${one.label}</option>`)}
          </select>`}<//>`}
      <${CodeEditor} label=${label} value=${value} onInput=${onInput} onProblem=${onProblem} check=${CHECKS[kind]} readOnly=${readOnly} />
    </div>`;
}

const CHECKS = { identity: policyCheck("identity"), trust: policyCheck("trust") };

// Which load is played.
import { html } from "../../ui.js";
import { Check } from "../../components/field.js";
import { scenarioLabel } from "./words.js";

/** A checkbox a scenario, with what it does. */
export function Scenarios({ scenarios, chosen, onChange }) {
  const names = scenarios.map((one) => one.name);
  const toggle = (name, checked) => onChange(names.filter((one) => (one === name ? checked : chosen.includes(one))));
  return html`
    <fieldset class="choices stack tight">
      <legend><h2>Which load</h2></legend>
      <div class="scenarios">
        ${scenarios.map((one) => html`
          <${Check} key=${one.name} label=${scenarioLabel(one.name)} hint=${one.about} checked=${chosen.includes(one.name)}
            onChange=${(checked) => toggle(one.name, checked)} />`)}
      </div>
    </fieldset>`;
}

// Transitions of lifecycle rules to storage classes, where the gateway has stores for some.
import { html } from "../../../../ui.js";
import { Button } from "../../../../components/button.js";
import { NumberInput, Select } from "../inputs.js";

/** Shows the transitions of a rule; nothing where no class has a store, for S3 would refuse it. */
export function Transitions({ rule, change, problem, classes }) {
  if (!classes.length && !rule.transitions.length && !rule.olderTransitions.length) return null;
  const first = classes[0] ?? "STANDARD_IA";
  return html`
    <${Steps} title="Move current objects" days="Days after they were written" steps=${rule.transitions} classes=${classes} problem=${problem("transitions")}
      onChange=${(transitions) => change({ transitions })} create=${() => ({ days: "30", date: null, storageClass: first })} />
    <${Steps} title="Move older versions" days="Days after they became older" steps=${rule.olderTransitions} classes=${classes} problem=${problem("olderTransitions")}
      onChange=${(olderTransitions) => change({ olderTransitions })} create=${() => ({ days: "30", newer: "", storageClass: first })} />`;
}

function Steps({ title, days, steps, classes, problem, onChange, create }) {
  const set = (index, changes) => onChange(steps.map((step, at) => (at === index ? { ...step, ...changes } : step)));
  return html`
    <div class="stack tight">
      ${steps.map((step, index) => html`<div class="columns" key=${index}>
        <${Select} label=${title} value=${step.storageClass} options=${[...new Set([...classes, step.storageClass])].map((one) => [one, `to ${one}`])} onChange=${(storageClass) => set(index, { storageClass })} />
        ${step.date ? html`<p>on ${step.date.slice(0, 10)}</p>` : html`<${NumberInput} label=${days} value=${step.days} problem=${index === 0 ? problem : ""} onInput=${(value) => set(index, { days: value })} />`}
        <div><${Button} icon="close" onClick=${() => onChange(steps.filter((_, at) => at !== index))}>Remove this step<//></div></div>`)}
      <div><${Button} kind="plain" icon="plus" onClick=${() => onChange([...steps, create()])}>${title}<//></div>
    </div>`;
}

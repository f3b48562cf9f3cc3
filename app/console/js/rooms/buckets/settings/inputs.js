// Controls that the forms of settings share. `problem` is a text, "" or undefined for none.
import { html } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { Field } from "../../../components/field.js";

/** A line of text. */
export function TextInput({ label, hint, problem, value, onInput, ...rest }) {
  return html`<${Field} label=${label} hint=${hint} problem=${problem}>
    ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} ...${rest} value=${value ?? ""} onInput=${(event) => onInput(event.target.value)} />`}<//>`;
}

/** A whole number, as text. */
export function NumberInput({ label, hint, problem, value, onInput }) {
  return html`<${TextInput} label=${label} hint=${hint} problem=${problem} value=${value} inputmode="numeric" onInput=${(text) => onInput(text.trim())} />`;
}

/** A choice: `options` are [value, label]. */
export function Select({ label, hint, problem, value, options, onChange, disabled }) {
  return html`<${Field} label=${label} hint=${hint} problem=${problem}>
    ${(props) => html`<select ...${props} disabled=${disabled} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map(([name, words]) => html`<option key=${name} value=${name} selected=${name === value}>${words}</option>`)}</select>`}<//>`;
}

/** Boxes to tick: `options` are [value, label, title]; `values` those that are ticked, in the order of the options. */
export function Ticks({ legend, problem, options, values, onChange }) {
  const toggle = (name, on) => onChange(options.map(([one]) => one).filter((one) => (one === name ? on : values.includes(one))));
  return html`
    <fieldset class="rule stack tight"><legend>${legend}</legend>
      <div class="checks">${options.map(([name, words, title]) => html`
        <label class="check" key=${name} title=${title}><input type="checkbox" checked=${values.includes(name)} onChange=${(event) => toggle(name, event.target.checked)} /> ${words}</label>`)}</div>
      ${problem && html`<span class="problem small" role="alert">${problem}</span>`}
    </fieldset>`;
}

/** Texts of which there may be more. */
export function Words({ label, hint, problem, values, onChange, placeholder, add = "Add" }) {
  const set = (index, value) => onChange(values.map((one, at) => (at === index ? value : one)));
  const shown = values.length ? values : [""];
  return html`
    <${Field} label=${label} hint=${hint} problem=${problem}>
      ${(props) => html`<div class="words-list">
        ${shown.map((value, index) => html`<div key=${index}>
          <input ...${index === 0 ? props : { "aria-label": `${label} ${index + 1}` }} autocomplete="off" spellcheck=${false} placeholder=${placeholder} value=${value}
            onInput=${(event) => (values.length ? set(index, event.target.value) : onChange([event.target.value]))} />
          ${values.length > 1 && html`<${Button} kind="plain" icon="close" label="Remove ${value || `line ${index + 1}`}" onClick=${() => onChange(values.filter((_, at) => at !== index))} />`}
        </div>`)}
        <div><${Button} kind="plain" icon="plus" onClick=${() => onChange([...shown, ""])}>${add}<//></div></div>`}<//>`;
}

/** Rules, each in a frame with a button to remove it. `render(rule, change, problemOf)` shows one; `create()` makes one. */
export function RuleList({ noun, rules, onChange, create, render, problems, path, most = 100, titleOf }) {
  const change = (index) => (changes) => onChange(rules.map((rule, at) => (at === index ? { ...rule, ...changes } : rule)));
  const problemOf = (index) => (name) => problems[`${path}.${index}.${name}`];
  return html`
    <div class="stack">
      ${rules.map((rule, index) => html`
        <fieldset class="rule stack" key=${index}><legend>${titleOf?.(rule, index) ?? `${noun} ${index + 1}`}</legend>
          ${render(rule, change(index), problemOf(index))}
          <div><${Button} icon="trash" onClick=${() => onChange(rules.filter((_, at) => at !== index))}>Remove this ${noun.toLowerCase()}<//></div>
        </fieldset>`)}
      <div><${Button} icon="plus" disabled=${rules.length >= most} why=${`There may be ${most}`} onClick=${() => onChange([...rules, create()])}>Add a ${noun.toLowerCase()}<//></div>
    </div>`;
}

/** Returns what is wrong with the text of a whole number. */
export function numberProblem(value, { least = 1, most = 2_147_483_647, required = true } = {}) {
  if (value === "" || value === null || value === undefined) return required ? "Write a whole number." : "";
  if (!/^\d+$/.test(value)) return "Write a whole number.";
  const found = Number(value);
  return found < least ? `At least ${least}.` : found > most ? `At most ${most}.` : "";
}

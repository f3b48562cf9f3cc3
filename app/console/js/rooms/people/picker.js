import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { useAction, useResource } from "../../resource.js";

/** Asks for one of a list. `load(signal)` returns [{ value, label }]; `choose(value)` does what was asked for. */
export function Picker({ title, label, action, load, choose, empty, onClose }) {
  const { data: options, error } = useResource(load, []);
  const [value, setValue] = useState("");
  const [run, acting] = useAction(choose);
  const submit = (event) => {
    event.preventDefault();
    if (value) run(value);
  };
  const foot = html`
    <${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="picker" busy=${acting.busy} disabled=${!value} why="Choose one first">${action}<//>`;
  return html`
    <${Dialog} title=${title} onClose=${onClose} foot=${foot}>
      <form id="picker" class="stack" onSubmit=${submit}>
        ${options && !options.length ? html`<p class="quiet">${empty}</p>` : html`
          <${Field} label=${label}>${(control) => html`
            <select ...${control} value=${value} onChange=${(event) => setValue(event.target.value)}>
              <option value="">${options ? "Choose…" : "Loading…"}</option>
              ${options?.map((one) => html`<option key=${one.value} value=${one.value}>${one.label}</option>`)}
            </select>`}<//>`}
        <${ErrorNote} error=${error ?? acting.error} />
      </form>
    <//>`;
}

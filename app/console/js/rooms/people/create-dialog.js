// A dialog that makes something that has a name, and what else its children ask.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { useAction } from "../../resource.js";
import { nameProblem } from "./iam.js";

/** Asks for a name. `create(name)` makes it; `problem` of the children holds the button back. */
export function CreateDialog({ title, label, hint, action, create, onClose, problem, wide, children }) {
  const [name, setName] = useState("");
  const [run, { busy, error }] = useAction(create);
  const wrong = nameProblem(name);
  const submit = (event) => {
    event.preventDefault();
    if (name && !wrong && !problem) run(name);
  };
  const foot = html`
    <${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="create" busy=${busy} disabled=${!name || wrong || problem}
      why=${wrong || problem || "Give it a name first"}>${action}<//>`;
  return html`
    <${Dialog} title=${title} onClose=${onClose} foot=${foot} wide=${wide}>
      <form id="create" class="stack" onSubmit=${submit}>
        <${Field} label=${label} hint=${hint} problem=${wrong}>
          ${(control) => html`<input ...${control} value=${name} autocomplete="off" spellcheck=${false} autofocus
            onInput=${(event) => setName(event.target.value)} />`}<//>
        ${children}
        <${ErrorNote} error=${error} />
      </form>
    <//>`;
}

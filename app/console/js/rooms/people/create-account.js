import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { useAction } from "../../resource.js";

/** Makes an account with a key of its own; `onDone(account)` gets the key with its secret. */
export function CreateAccount({ onDone, onClose }) {
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [create, { busy, error }] = useAction(async () => {
    onDone(await callApi("POST", "accounts", { body: { display_name: name.trim(), email: email.trim() } }));
  });
  const submit = (event) => {
    event.preventDefault();
    if (name.trim()) create();
  };
  const foot = html`
    <${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="create-account" busy=${busy} disabled=${!name.trim()} why="Give it a name first">Create account<//>`;
  return html`
    <${Dialog} title="Create account" onClose=${onClose} foot=${foot}>
      <form id="create-account" class="stack" onSubmit=${submit}>
        <${Field} label="Name" hint="Shown as the owner of buckets and objects.">
          ${(control) => html`<input ...${control} value=${name} maxlength="256" autocomplete="off" autofocus onInput=${(event) => setName(event.target.value)} />`}<//>
        <${Field} label="E-mail" hint="Optional. ACLs may name the account by it; no mail is sent.">
          ${(control) => html`<input ...${control} value=${email} maxlength="256" autocomplete="off" onInput=${(event) => setEmail(event.target.value)} />`}<//>
        <${ErrorNote} error=${error} />
      </form>
    <//>`;
}

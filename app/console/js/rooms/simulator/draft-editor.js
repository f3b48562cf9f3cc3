import { html } from "../../ui.js";
import { Button } from "../../components/button.js";
import { CodeEditor } from "../../components/code-editor.js";
import { Field } from "../../components/field.js";

const KINDS = [
  ["bucket", "In place of the bucket's policy"],
  ["inline", "As an inline policy of the principal"],
  ["managed", "In place of a managed policy"],
  ["group", "In place of a policy of a group"],
  ["session", "As a session policy, which limits the principal"],
];

/** Edits a policy that is tried without being stored: { kind, name, text }, null for none. */
export function DraftEditor({ draft, onChange, bucket }) {
  if (!draft) {
    const start = () => onChange({ kind: "inline", name: "", text: template("inline", bucket) });
    return html`<div><${Button} icon="plus" onClick=${start}>Try with another policy<//></div>`;
  }
  const set = (change) => onChange({ ...draft, ...change });
  const setKind = (kind) => set({ kind, text: draft.text === template(draft.kind, bucket) ? template(kind, bucket) : draft.text });
  const named = draft.kind !== "bucket" && draft.kind !== "session";
  return html`
    <fieldset class="conditions stack">
      <legend>A policy to try</legend>
      <div class="grid">
        <${Field} label="How it counts">
          ${(control) => html`<select ...${control} value=${draft.kind} onChange=${(event) => setKind(event.target.value)}>
            ${KINDS.map(([kind, label]) => html`<option key=${kind} value=${kind}>${label}</option>`)}</select>`}<//>
        ${named && html`<${Field} label="Name" hint="It replaces the policy of this name; without one it is added.">
          ${(control) => html`<input ...${control} value=${draft.name} spellcheck=${false} onInput=${(event) => set({ name: event.target.value })} />`}<//>`}
      </div>
      <${CodeEditor} label="Policy" value=${draft.text} onInput=${(text) => set({ text })} rows=${10} />
      <div><${Button} onClick=${() => onChange(null)}>Without it<//></div>
    </fieldset>`;
}

function template(kind, bucket) {
  const statement = { Effect: "Allow", Action: ["s3:GetObject"], Resource: [`arn:aws:s3:::${bucket || "BUCKET"}/*`] };
  if (kind === "bucket") statement.Principal = "*";
  return JSON.stringify({ Version: "2012-10-17", Statement: [statement] }, null, 2);
}

import { html, useEffect, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { useAction, useResource } from "../../resource.js";
import { callIam, nameProblem, readablePolicy } from "./iam.js";
import { PolicyEditor } from "./policy-editor.js";
import { IDENTITY_TEMPLATES } from "./templates.js";

/** Writes or shows an inline policy. `of`: { UserName } and the like; `policy`: its name, "" for a new one. */
export function InlinePolicyDialog({ kind, of, policy, readOnly, onDone, onClose }) {
  const [name, setName] = useState(policy);
  const [text, setText] = useState(policy ? "" : IDENTITY_TEMPLATES[0].document);
  const [problem, setProblem] = useState("");
  const stored = useResource(async (signal) => (policy ? callIam(`Get${kind}Policy`, { ...of, PolicyName: policy }, { signal }) : null), []);
  useEffect(() => {
    if (stored.data) setText(readablePolicy(stored.data.PolicyDocument));
  }, [stored.data]);
  const [save, saving] = useAction(async () => {
    await callIam(`Put${kind}Policy`, { ...of, PolicyName: name, PolicyDocument: text });
    toast(`Policy ${name} is stored, and holds from now on.`);
    onDone();
  });
  const wrong = nameProblem(name);
  const ready = name && !wrong && !problem && (!policy || stored.data);
  const submit = (event) => {
    event.preventDefault();
    if (ready) save();
  };
  const foot = html`
    <${Button} onClick=${onClose}>${readOnly ? "Close" : "Cancel"}<//>
    ${!readOnly && html`<${Button} kind="primary" type="submit" form="inline-policy" busy=${saving.busy} disabled=${!ready}
      why=${wrong || problem || "Give it a name first"}>Save policy<//>`}`;
  return html`
    <${Dialog} title=${policy ? `Inline policy ${policy}` : "Write an inline policy"} wide onClose=${onClose} foot=${foot}>
      <form id="inline-policy" class="stack" onSubmit=${submit}>
        ${!policy && html`<${Field} label="Policy name" problem=${wrong}>
          ${(control) => html`<input ...${control} value=${name} autocomplete="off" spellcheck=${false} onInput=${(event) => setName(event.target.value)} />`}<//>`}
        ${(!policy || stored.data) && html`<${PolicyEditor} kind="identity" label="Policy" value=${text} onInput=${setText} onProblem=${setProblem}
          templates=${policy ? [] : IDENTITY_TEMPLATES} readOnly=${readOnly} />`}
        <${ErrorNote} error=${stored.error ?? saving.error} />
      </form>
    <//>`;
}

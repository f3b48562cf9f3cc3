// The page of one setting: its form, or its text with line numbers, saved and removed by S3.
import { html } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { confirm } from "../../../components/dialog.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { toast } from "../../../components/toast.js";
import { parseXml } from "../../../xml.js";
import { BucketError } from "../bucket-frame.js";
import { LineEditor } from "./line-editor.js";
import { indent, isSameDocument, xmlProblem } from "./shape.js";
import { firstDraft, useSetting } from "./use-setting.js";

/** Shows a setting. `kind` describes it (settings/kinds), `bucket` is its detail. */
export function SettingPage({ kind, bucket }) {
  const setting = useSetting(kind, bucket.name);
  const { loaded, draft, dirty } = setting;
  if (!loaded || !draft) return html`<${BucketError} name=${bucket.name} error=${setting.error} retry=${setting.reload} />`;
  const textProblem = draft.mode === "text" ? xmlProblem(draft.text, kind.root) : null;
  const problems = draft.mode === "form" ? kind.problems?.(draft.value, bucket) ?? {} : {};
  const isNew = kind.saveUnchanged && loaded.source === null; // what the form begins with is something to save
  const wrong = Boolean(textProblem) || Object.values(problems).some(Boolean);
  const source = () => (draft.mode === "text" ? draft.text : kind.write(kind.tidy?.(draft.value) ?? draft.value));
  const save = async () => {
    const question = kind.question?.(draft.value, loaded.value);
    if (question && !(await confirm(question))) return;
    if (await setting.save(source())) toast(`${kind.title}: saved.`);
  };
  return html`
    <div class="setting stack">
      <p class="quiet">${kind.about}</p>
      <${ErrorNote} error=${setting.error} retry=${setting.reload} />
      <div class="stack" inert=${setting.saving}>
        ${kind.root && !kind.formOnly && html`<${Mode} kind=${kind} setting=${setting} wrong=${Boolean(textProblem)} />`}
        ${draft.mode === "form"
          ? html`<${kind.Form} value=${draft.value} note=${draft.note} bucket=${bucket} problems=${problems} reload=${setting.reload}
              onChange=${(value) => setting.setDraft({ ...draft, value })} onNote=${(note) => setting.setDraft({ ...draft, note })} />`
          : html`<${TextForm} kind=${kind} draft=${draft} problem=${textProblem} onInput=${(text) => setting.setDraft({ ...draft, text })} />`}
      </div>
      <${ErrorNote} error=${setting.saveError} />
      <${Foot} kind=${kind} setting=${setting} dirty=${dirty} isNew=${isNew} wrong=${wrong} save=${save} />
      ${kind.After && html`<${kind.After} bucket=${bucket} loaded=${loaded} dirty=${dirty} wrong=${wrong} draft=${draft} source=${source} />`}
    </div>`;
}

function TextForm({ kind, draft, problem, onInput }) {
  return html`
    <${Field} label="XML of ${kind.title.toLowerCase()}" problem=${problem?.message}>
      ${(control) => html`<${LineEditor} control=${control} value=${draft.text} wrongLine=${problem?.line} onInput=${onInput} />`}<//>`;
}

function Mode({ kind, setting, wrong }) {
  const { draft, loaded } = setting;
  const toText = () => {
    const text = indent(kind.write(kind.tidy?.(draft.value) ?? draft.value));
    setting.setDraft({ ...draft, mode: "text", text: setting.dirty || loaded.source === null ? text : firstDraft(kind, loaded).text });
  };
  const value = draft.mode === "text" && !wrong ? kind.read(parseXml(draft.text)) : null;
  const fits = value !== null && isSameDocument(draft.text, kind.write(value));
  const toForm = () => setting.setDraft({ ...draft, mode: "form", value });
  if (draft.mode === "form") return html`<div class="row"><${Button} kind="plain" onClick=${toText}>Show as XML<//></div>`;
  return html`
    <div class="stack tight">
      ${!loaded.shown && html`<p class="note warn">This setting has something that the form cannot show, so that it would be lost there. Edit its XML.</p>`}
      <div class="row"><${Button} kind="plain" disabled=${!fits} why=${wrong ? "Mend the XML first" : "The form cannot show all of it"} onClick=${toForm}>Show as a form<//></div>
    </div>`;
}

/** The buttons below a setting. */
export function Foot({ kind, setting, dirty, isNew, wrong, save }) {
  const remove = async () => {
    const agreed = await confirm({ title: `Remove: ${kind.title}?`, message: kind.loss, action: "Remove" });
    if (agreed && (await setting.save(null))) toast(`${kind.title}: removed.`);
  };
  return html`
    <div class="setting-foot row">
      <${Button} kind="primary" busy=${setting.saving} disabled=${!(dirty || isNew) || wrong} why=${wrong ? "Mend what is wrong first" : "Nothing has changed"} onClick=${save}>Save<//>
      <${Button} disabled=${!dirty || setting.saving} onClick=${() => setting.setDraft(null)}>Undo changes<//>
      <span class="grow"></span>
      ${kind.loss && setting.loaded.source !== null && html`<${Button} kind="danger" disabled=${setting.saving} onClick=${remove}>Remove…<//>`}
    </div>`;
}

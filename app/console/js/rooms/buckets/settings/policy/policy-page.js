// The editor of a bucket policy: line numbers, templates, what the gateway says to it, and the simulator.
import { html, useEffect, useState } from "../../../../ui.js";
import { callApi } from "../../../../api.js";
import { Button } from "../../../../components/button.js";
import { formatJson } from "../../../../components/code-editor.js";
import { confirm } from "../../../../components/dialog.js";
import { ErrorNote } from "../../../../components/error-note.js";
import { Field } from "../../../../components/field.js";
import { Menu } from "../../../../components/menu.js";
import { toast } from "../../../../components/toast.js";
import { BucketError } from "../../bucket-frame.js";
import { LineEditor } from "../line-editor.js";
import { Foot } from "../setting-page.js";
import { useSetting } from "../use-setting.js";
import { findJsonFault } from "./json-fault.js";
import { addStatement, TEMPLATES } from "./templates.js";

const LOCKED_OUT = "With this policy the console cannot change it any more, as you use it now (its address, http or https, your network). Only the account's own key can then remove it, from an S3 client.";
const CHECK_AFTER_MS = 350;
const MAX_BYTES = 20_480;

/** Shows the policy of a bucket. */
export function PolicyPage({ kind, bucket }) {
  const setting = useSetting(kind, bucket.name);
  const { draft, dirty, loaded } = setting;
  const text = draft?.text ?? "";
  const { problem, line, isPublic, locksOut } = useCheck(bucket.name, text, dirty);
  if (!draft) return html`<${BucketError} name=${bucket.name} error=${setting.error} retry=${setting.reload} />`;
  const onInput = (value) => setting.setDraft({ ...draft, text: value });
  const save = async () => {
    if (locksOut && !(await confirm({ title: "Lock yourself out?", message: LOCKED_OUT, action: "Save it all the same" }))) return;
    if (isPublic && !(await confirm({ title: "Let everybody in?", message: "This policy gives rights to everybody, also without a key.", action: "Save it" }))) return;
    if (await setting.save(text)) toast("Policy: saved.");
  };
  return html`
    <div class="setting stack">
      <p class="quiet">${kind.about}</p>
      <${ErrorNote} error=${setting.error} retry=${setting.reload} />
      <div class="stack" inert=${setting.saving}>
      <${Tools} bucket=${bucket} text=${text} onInput=${onInput} />
      ${loaded.source === null && !dirty && html`<p class="note">There is no policy: only the owner and what users' own policies allow. Begin with a template.</p>`}
      <${Field} label="Policy (JSON)" problem=${problem} hint="Checked while you type, and again when it is saved.">
        ${(control) => html`<${LineEditor} control=${control} value=${text} wrongLine=${line} onInput=${onInput} />`}<//>
      </div>
      ${locksOut && html`<p class="note warn" role="status">${LOCKED_OUT}</p>`}
      ${isPublic && html`<p class="note warn" role="status">This lets everybody in.</p>`}
      <${ErrorNote} error=${setting.saveError} />
      <${Foot} kind=${kind} setting=${setting} dirty=${dirty} wrong=${Boolean(problem)} save=${save} />
      <${Simulator} bucket=${bucket} policy=${dirty && !problem ? text : undefined} />
    </div>`;
}

function Tools({ bucket, text, onInput }) {
  const broken = Boolean(text.trim()) && Boolean(findJsonFault(text));
  const items = TEMPLATES.map((template) => ({
    label: template.label, disabled: broken, why: "Mend the JSON first",
    onClick: () => {
      onInput(addStatement(text, template.statement(bucket.name)));
      toast(template.about);
    },
  }));
  return html`
    <div class="row"><${Menu} label="Add from a template" text="Add from a template" icon="plus" kind="" items=${items} />
      <${Button} disabled=${broken || !text.trim()} why="It is no JSON yet" onClick=${() => onInput(formatJson(text))}>Format<//></div>`;
}

/** Returns what is wrong with a text, with its line, and whether it lets everybody in. */
function useCheck(bucket, text, dirty) {
  const [found, setFound] = useState({ text: null, problem: "", public: false });
  const size = new TextEncoder().encode(text).length;
  const fault = dirty && text.trim() ? findJsonFault(text) : null;
  const own = !dirty ? "" : !text.trim() ? "Write a policy, or remove it below." : fault?.message ?? (size > MAX_BYTES ? `It has ${size} bytes, and may have ${MAX_BYTES}.` : "");
  useEffect(() => {
    if (!dirty || own) return undefined;
    const abort = new AbortController();
    const ask = () => callApi("POST", `buckets/${encodeURIComponent(bucket)}/policy-check`, { body: { policy: text }, signal: abort.signal }).then(
      (answer) => setFound({ text, ...answer }),
      () => {}, // saving it will say what is wrong
    );
    const timer = setTimeout(ask, CHECK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [bucket, text, own, dirty]);
  const current = dirty && !own && found.text === text;
  const problem = own || (current ? found.problem : "");
  return { problem, line: fault?.line ?? null, isPublic: current && found.public, locksOut: current && Boolean(found.locks_out) };
}

/** The simulator, loaded when it is opened; with changes that are not saved it tries those. */
function Simulator({ bucket, policy }) {
  const [Shown, setShown] = useState(null);
  const [error, setError] = useState(null);
  const open = () => import("../../../simulator/bucket-simulator.js").then((module) => setShown(() => module.BucketSimulator), setError);
  return html`
    <section class="stack" aria-label="Simulator">
      <${ErrorNote} error=${error} />
      ${Shown ? html`<${Shown} bucket=${bucket.name} policy=${policy} />` : html`<div><${Button} onClick=${open}>Try what it allows…<//></div>`}
    </section>`;
}

// The form of the simulator, with its answer below.
import { callApi } from "../../api.js";
import { html, useEffect, useId, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { useAction, useResource } from "../../resource.js";
import { callS3Xml } from "../../s3.js";
import { session } from "../../session.js";
import { ACTIONS, isOnObject } from "./actions.js";
import { Answer } from "./answer.js";
import { Conditions } from "./conditions.js";
import { DraftEditor } from "./draft-editor.js";

const START = { principal: "", action: "s3:GetObject", bucket: "", key: "" };

/**
 * Asks and answers. `initial` fills the form, `fixed` fields are not shown, `drafts` go with each question; `withDrafts`
 * lets one write more; `onAsk(question)` hears of each question.
 */
export function Simulator({ initial = {}, fixed = {}, drafts = [], withDrafts = false, onAsk }) {
  const [asked, setAsked] = useState({ ...START, ...Object.fromEntries(Object.entries(initial).filter(([, value]) => value)) });
  const [conditions, setConditions] = useState([]);
  const [draft, setDraft] = useState(null);
  const [answer, setAnswer] = useState(null);
  const set = (name) => (event) => setAsked({ ...asked, [name]: event.target.value });
  const [run, { busy, error }] = useAction(async () => {
    const question = { ...asked, key: isOnObject(asked.action) ? asked.key : undefined };
    const values = Object.fromEntries(conditions.filter((one) => one.key).map((one) => [one.key, one.value]));
    onAsk?.(question);
    setAnswer(await callApi("POST", "simulation", { body: { ...question, conditions: values, drafts: draft ? [...drafts, draft] : drafts } }));
  });
  useEffect(() => {
    if (initial.principal && initial.action) run();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  return html`
    <form class="stack simulator" onSubmit=${submit}>
      <div class="grid">
        <${Suggested} label="Who" required value=${asked.principal} onInput=${set("principal")} load=${loadPrincipals}
          hint="An access key, the ARN of a user, role or session, an account, or * for everybody." />
        <${Suggested} label="Does what" required value=${asked.action} onInput=${set("action")} values=${ACTIONS}
          hint="An action, as policies name it." />
        ${!("bucket" in fixed) && html`<${Suggested} label="Bucket" value=${asked.bucket} onInput=${set("bucket")} load=${loadBuckets} required=${asked.action !== "s3:ListAllMyBuckets"} />`}
        ${isOnObject(asked.action) && html`<${Suggested} label="Key" required value=${asked.key} onInput=${set("key")} values=${[]}
          hint="Of an object, which need not exist." />`}
      </div>
      <${Conditions} conditions=${conditions} onChange=${setConditions} />
      ${withDrafts && html`<${DraftEditor} draft=${draft} onChange=${setDraft} bucket=${asked.bucket} />`}
      <div class="row"><${Button} kind="primary" type="submit" icon="play" busy=${busy}>Simulate<//></div>
    </form>
    <${ErrorNote} error=${error} />
    <div aria-live="polite">${answer && !error && html`<${Answer} answer=${answer} />`}</div>`;
}

function Suggested({ label, hint, value, onInput, values, load, required }) {
  const list = useId();
  const { data } = useResource(async (signal) => (load ? load(signal) : values), []);
  return html`
    <${Field} label=${label} hint=${hint}>
      ${(control) => html`<input ...${control} list=${list} required=${required} value=${value} onInput=${onInput} autocomplete="off"
        autocapitalize="none" spellcheck=${false} />`}<//>
    <datalist id=${list}>${(data ?? []).map((one) => html`<option key=${one} value=${one} />`)}</datalist>`;
}

async function loadBuckets(signal) {
  try {
    const answer = await callS3Xml({ query: { "max-buckets": "1000" }, signal });
    return [...answer.getElementsByTagName("Name")].map((one) => one.textContent);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return []; // without the right to list buckets they are typed
  }
}

async function loadPrincipals(signal) {
  const known = ["*", session.peek().arn];
  try {
    const { Users = [] } = await callApi("POST", "iam", { body: { action: "ListUsers", parameters: { MaxItems: "100" } }, signal });
    return [...known, ...Users.map((user) => user.Arn)];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return known; // without the right to list users they are typed
  }
}

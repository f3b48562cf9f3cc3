import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { CodeEditor } from "../../components/code-editor.js";
import { ErrorNote } from "../../components/error-note.js";
import { Check, Field } from "../../components/field.js";
import { Time } from "../../components/values.js";
import { useAction } from "../../resource.js";
import { session } from "../../session.js";
import { arnOf, callIam, nameProblem, policyCheck } from "./iam.js";
import { ListPage } from "./list-page.js";
import { SecretDialog } from "./secret-dialog.js";
import { IDENTITY_TEMPLATES } from "./templates.js";

const HOUR = 3600;
const HOURS = [0.25, 1, 4, 8, 12, 24, 36];
const ROLE_HOURS = 12;
const ACCOUNT_HOURS = 1;
const CHECK = policyCheck("identity");

/** Temporary credentials: for oneself (GetSessionToken), or of a role (AssumeRole). */
export function TemporaryPage({ query, tabs }) {
  const [made, setMade] = useState(null);
  const take = ({ Credentials: given }, owner) =>
    setMade({ owner, accessKey: given.AccessKeyId, secretKey: given.SecretAccessKey, token: given.SessionToken, expires: given.Expiration });
  const isUser = session.peek().kind === "User";
  return html`
    <${ListPage} title="Temporary credentials" tabs=${tabs} query=${query}>
      <p class="quiet">A key, a secret and a session token that end by themselves. They end at once when their user, role or account is removed.</p>
      <div class="grid">
        <${Own} take=${take} hours=${HOURS.filter((hours) => isUser || hours <= ACCOUNT_HOURS)} />
        ${isUser ? html`<${Assume} take=${take} role=${query.get("role") ?? ""} />` : html`
          <section class="card stack"><h2>Those of a role</h2><p class="quiet">The account itself cannot assume roles. Sign in with the key of a user.</p></section>`}
      </div>
    <//>
    ${made && html`<${SecretDialog} title="Temporary credentials" owner=${made.owner} credentials=${made} onClose=${() => setMade(null)}>
      <p>They end <${Time} value=${made.expires} />.</p><//>`}`;
}

function Duration({ hours, value, onChange }) {
  return html`
    <${Field} label="Valid for">${(control) => html`
      <select ...${control} value=${value} onChange=${(event) => onChange(Number(event.target.value))}>
        ${hours.map((one) => html`<option key=${one} value=${one * HOUR}>${one < 1 ? `${one * 60} minutes` : one === 1 ? "1 hour" : `${one} hours`}</option>`)}
      </select>`}<//>`;
}

function Own({ take, hours }) {
  const [seconds, setSeconds] = useState(HOUR);
  const [make, { busy, error }] = useAction(async () => take(await callIam("GetSessionToken", { DurationSeconds: seconds }), session.peek().name));
  return html`
    <section class="card stack" aria-labelledby="own-head">
      <h2 id="own-head">Your own</h2>
      <p class="quiet">With your rights, but not for IAM.</p>
      <${Duration} hours=${hours} value=${seconds} onChange=${setSeconds} />
      <${ErrorNote} error=${error} />
      <div><${Button} kind="primary" busy=${busy} onClick=${make}>Make credentials<//></div>
    </section>`;
}

function Assume({ take, role }) {
  const [values, setValues] = useState({ arn: role ? arnOf("role", role) : "", name: session.peek().name, seconds: HOUR, external: "", policy: "", limited: false });
  const [problem, setProblem] = useState("");
  const set = (field) => (value) => setValues((before) => ({ ...before, [field]: value }));
  const typed = (field) => (event) => set(field)(event.target.value.trim());
  const wrongName = nameProblem(values.name) || (values.name.length < 2 ? "At least 2 characters." : "");
  const wrongArn = values.arn && !/^arn:aws:iam::\d{12}:role\/.+/.test(values.arn) ? "An ARN like arn:aws:iam::123456789012:role/NAME." : "";
  const wrong = wrongName || wrongArn || (values.limited && problem);
  const [make, { busy, error }] = useAction(async () => {
    const answer = await callIam("AssumeRole", {
      RoleArn: values.arn, RoleSessionName: values.name, DurationSeconds: values.seconds,
      ...(values.external ? { ExternalId: values.external } : {}), ...(values.limited ? { Policy: values.policy } : {}),
    });
    take(answer, answer.AssumedRoleUser.Arn.split("/").slice(1).join("-"));
  });
  const submit = (event) => {
    event.preventDefault();
    if (values.arn && !wrong) make();
  };
  const limit = (limited) => setValues((before) => ({ ...before, limited, policy: before.policy || IDENTITY_TEMPLATES[0].document }));
  return html`
    <form class="card stack" aria-labelledby="assume-head" onSubmit=${submit}>
      <h2 id="assume-head">Those of a role</h2>
      <p class="quiet">With the role's rights instead of yours. Its trust policy must name you.</p>
      <${Field} label="ARN of the role" problem=${wrongArn}>${(control) => html`<input ...${control} value=${values.arn} spellcheck=${false} onInput=${typed("arn")} />`}<//>
      <${Field} label="Name of the session" hint="Logs show it." problem=${wrongName}>${(control) => html`<input ...${control} value=${values.name} spellcheck=${false} onInput=${typed("name")} />`}<//>
      <${Duration} hours=${HOURS.filter((hours) => hours <= ROLE_HOURS)} value=${values.seconds} onChange=${set("seconds")} />
      <${Field} label="External id" hint="Only if the trust policy asks for one.">${(control) => html`<input ...${control} value=${values.external} onInput=${typed("external")} />`}<//>
      <${Check} label="Limit them by a policy" hint="They may do what both the role and this policy allow." checked=${values.limited} onChange=${limit} />
      ${values.limited && html`<${CodeEditor} label="Session policy" rows="10" value=${values.policy} onInput=${set("policy")} onProblem=${setProblem} check=${CHECK} />`}
      <${ErrorNote} error=${error} />
      <div><${Button} kind="primary" type="submit" busy=${busy} disabled=${!values.arn || Boolean(wrong)} why=${wrong || "Say which role"}>Make credentials<//></div>
    </form>`;
}

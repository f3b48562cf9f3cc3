import { html, useEffect, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Copy, Time } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { leaveQuestion, navigate, pathTo } from "../../router.js";
import { accountNumber, arnOf, callIam, readablePolicy } from "./iam.js";
import { LastUse } from "./last-use.js";
import { PoliciesCard } from "./policies-card.js";
import { PolicyEditor } from "./policy-editor.js";
import { detachPolicies } from "./removal.js";
import { useRights } from "./rights.js";
import { trustTemplates } from "./templates.js";

const HOURS = [1, 2, 4, 8, 12];

/** A role: who may assume it, for how long, and what it may do. */
export function RolePage({ name }) {
  const crumbs = [{ label: "People", href: pathTo(["people"]) }, { label: "Roles", href: pathTo(["people", "roles"]) }];
  const { data, error, reload } = useResource(async (signal) => (await callIam("GetRole", { RoleName: name }, { signal })).Role, [name]);
  const { may, known } = useRights([data?.Arn ?? arnOf("role", name)]);
  const [remove, removing] = useAction(async () => {
    const details = ["its trust policy and its inline policies with their texts", "all its sessions: who uses its temporary keys is refused at once"];
    if (!(await confirm({ title: `Delete the role ${name}?`, message: "It cannot be brought back.", details, action: "Delete role", word: name }))) return;
    await detachPolicies("Role", name);
    await callIam("DeleteRole", { RoleName: name });
    toast(`Role ${name} is deleted.`);
    navigate(pathTo(["people", "roles"]));
  });
  return html`
    <${Page} title=${name} crumbs=${crumbs} actions=${data && may("DeleteRole") && html`<${Button} kind="danger" icon="trash" busy=${removing.busy} onClick=${remove}>Delete role<//>`}>
      <div class="stack">
        <${ErrorNote} error=${error ?? removing.error} retry=${error && reload} />
        ${data && known && html`
          <dl class="facts"><dt>ARN</dt><dd class="row"><code>${data.Arn}</code> <${Copy} text=${data.Arn} label="Copy ARN" /></dd>
            ${data.Description && html`<dt>Description</dt><dd>${data.Description}</dd>`}
            <dt>Created</dt><dd><${Time} value=${data.CreateDate} /></dd>
            <dt>Last used</dt><dd><${LastUse} used=${data.RoleLastUsed.LastUsedDate} /></dd></dl>
          <${Trust} role=${data} may=${may} reload=${reload} />
          <${Duration} role=${data} may=${may} reload=${reload} />
          <${PoliciesCard} kind="Role" name=${name} may=${may} />`}
      </div>
    <//>`;
}

function Trust({ role, may, reload }) {
  const stored = readablePolicy(role.AssumeRolePolicyDocument);
  const [text, setText] = useState(stored);
  const [problem, setProblem] = useState("");
  useEffect(() => setText(stored), [stored]);
  const changed = text !== stored;
  useEffect(() => {
    leaveQuestion.value = changed ? () => "The trust policy is not saved. Leave it?" : null;
    return () => {
      leaveQuestion.value = null;
    };
  }, [changed]);
  const [save, { busy, error }] = useAction(async () => {
    await callIam("UpdateAssumeRolePolicy", { RoleName: role.RoleName, PolicyDocument: text });
    toast("The trust policy is stored, and holds from now on.");
    reload();
  });
  const readOnly = !may("UpdateAssumeRolePolicy");
  return html`
    <section class="card stack" aria-labelledby="trust-head">
      <h2 id="trust-head">Who may assume it</h2>
      <${PolicyEditor} kind="trust" label="Trust policy" value=${text} onInput=${setText} onProblem=${setProblem} readOnly=${readOnly} templates=${trustTemplates(accountNumber())} />
      <${ErrorNote} error=${error} />
      ${!readOnly && html`<div class="row"><${Button} kind="primary" busy=${busy} disabled=${!changed || problem} why=${problem || "Nothing is changed"} onClick=${save}>Save trust policy<//>
        ${changed && html`<${Button} onClick=${() => setText(stored)}>Undo<//>`}</div>`}
    </section>`;
}

function Duration({ role, may, reload }) {
  const [change, { busy, error }] = useAction(async (MaxSessionDuration) => {
    await callIam("UpdateRole", { RoleName: role.RoleName, MaxSessionDuration });
    toast("The longest session is changed.");
    reload();
  });
  const current = role.MaxSessionDuration;
  const options = [...new Set([...HOURS.map((hours) => hours * 3600), current])].sort((one, other) => one - other);
  return html`
    <section class="card stack" aria-labelledby="duration-head">
      <h2 id="duration-head">Sessions</h2>
      <${Field} label="Longest session" hint="A caller asks for less or as much. Sessions that run go on.">
        ${(control) => html`<select ...${control} value=${current} disabled=${busy || !may("UpdateRole")} onChange=${(event) => change(Number(event.target.value))}>
          ${options.map((seconds) => html`<option key=${seconds} value=${seconds}>${seconds / 3600} ${seconds === 3600 ? "hour" : "hours"}</option>`)}</select>`}<//>
      <${ErrorNote} error=${error} />
    </section>`;
}

import { html, useEffect, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Badge, Copy, Time } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { leaveQuestion, navigate, pathTo } from "../../router.js";
import { arnOf, callIam, listAll, readablePolicy } from "./iam.js";
import { PolicyEditor } from "./policy-editor.js";
import { useRights } from "./rights.js";

const MAX_VERSIONS = 5;
const ENTITIES = [["PolicyUsers", "User", "users"], ["PolicyGroups", "Group", "groups"], ["PolicyRoles", "Role", "roles"]];

async function readPolicy(PolicyArn, signal) {
  const { Policy } = await callIam("GetPolicy", { PolicyArn }, { signal });
  const [versions, current] = await Promise.all([
    listAll("ListPolicyVersions", "Versions", { PolicyArn }, { signal }),
    callIam("GetPolicyVersion", { PolicyArn, VersionId: Policy.DefaultVersionId }, { signal }),
  ]);
  return { policy: Policy, versions: versions.reverse(), text: readablePolicy(current.PolicyVersion.Document) };
}

/** A managed policy: its text, versions, and to what it is attached. */
export function PolicyPage({ name, query }) {
  const arn = query.get("arn") || arnOf("policy", name);
  const builtIn = arn.startsWith("arn:aws:iam::aws:");
  const crumbs = [{ label: "People", href: pathTo(["people"]) }, { label: "Policies", href: pathTo(["people", "policies"]) }];
  const { data, error, reload } = useResource((signal) => readPolicy(arn, signal), [arn]);
  const { may, known } = useRights([arn]);
  const [remove, removing] = useAction(async () => {
    const details = [`${data.versions.length} versions of its text`];
    if (!(await confirm({ title: `Delete the policy ${name}?`, message: "It is attached to nothing, and cannot be brought back.", details, action: "Delete policy", word: name }))) return;
    for (const version of data.versions) {
      if (!version.IsDefaultVersion) await callIam("DeletePolicyVersion", { PolicyArn: arn, VersionId: version.VersionId });
    }
    await callIam("DeletePolicy", { PolicyArn: arn });
    toast(`Policy ${name} is deleted.`);
    navigate(pathTo(["people", "policies"]));
  });
  const attached = data?.policy.AttachmentCount > 0;
  const actions = data && !builtIn && may("DeletePolicy") && html`<${Button} kind="danger" icon="trash" busy=${removing.busy} disabled=${attached}
    why="It is attached: detach it first" onClick=${remove}>Delete policy<//>`;
  return html`
    <${Page} title=${name} crumbs=${crumbs} actions=${actions}>
      <div class="stack">
        <${ErrorNote} error=${error ?? removing.error} retry=${error && reload} />
        ${data && known && html`
          <dl class="facts"><dt>ARN</dt><dd class="row"><code>${arn}</code> <${Copy} text=${arn} label="Copy ARN" /></dd>
            ${data.policy.Description && html`<dt>Description</dt><dd>${data.policy.Description}</dd>`}
            ${builtIn && html`<dt>Origin</dt><dd>It comes with the gateway, and cannot be changed.</dd>`}</dl>
          <${Text} arn=${arn} data=${data} readOnly=${builtIn || !may("CreatePolicyVersion")} reload=${reload} />
          ${!builtIn && html`<${Versions} arn=${arn} versions=${data.versions} may=${may} reload=${reload} />`}
          ${!builtIn && may("ListEntitiesForPolicy") && html`<${Attached} arn=${arn} />`}`}
      </div>
    <//>`;
}

function Text({ arn, data, readOnly, reload }) {
  const [text, setText] = useState(data.text);
  const [problem, setProblem] = useState("");
  useEffect(() => setText(data.text), [data.text]);
  const changed = text !== data.text;
  useEffect(() => {
    leaveQuestion.value = changed ? () => "The policy is not saved. Leave it?" : null;
    return () => {
      leaveQuestion.value = null;
    };
  }, [changed]);
  const full = data.versions.length >= MAX_VERSIONS;
  const [save, { busy, error }] = useAction(async () => {
    await callIam("CreatePolicyVersion", { PolicyArn: arn, PolicyDocument: text, SetAsDefault: true });
    toast("The policy is stored as a new version, and holds from now on.");
    reload();
  });
  return html`
    <section class="card stack" aria-label="Text">
      <${PolicyEditor} kind="identity" label="Policy (version ${data.policy.DefaultVersionId})" value=${text} onInput=${setText} onProblem=${setProblem} readOnly=${readOnly} />
      <${ErrorNote} error=${error} />
      ${!readOnly && html`<div class="row"><${Button} kind="primary" busy=${busy} disabled=${!changed || problem || full}
        why=${problem || (full ? `There are ${MAX_VERSIONS} versions, which is the most: delete one first` : "Nothing is changed")} onClick=${save}>Save as new version<//>
        ${changed && html`<${Button} onClick=${() => setText(data.text)}>Undo<//>`}</div>`}
    </section>`;
}

function Versions({ arn, versions, may, reload }) {
  const [run, { busy, error }] = useAction(async (action, VersionId) => {
    await callIam(action, { PolicyArn: arn, VersionId });
    reload();
  });
  const remove = async (id) => {
    if (await confirm({ title: `Delete version ${id}?`, message: "Its text is lost.", action: "Delete version" })) run("DeletePolicyVersion", id);
  };
  return html`
    <section class="card stack" aria-labelledby="versions-head"><h2 id="versions-head">Versions</h2>
      <${ErrorNote} error=${error} />
      <ul class="lines">${versions.map(({ VersionId: id, IsDefaultVersion: isDefault, CreateDate: made }) => html`
        <li class="row" key=${id}><span class="grow">${id} ${isDefault && html`<${Badge} kind="good">default<//>`} <span class="quiet"><${Time} value=${made} /></span></span>
          ${!isDefault && may("SetDefaultPolicyVersion") && html`<${Button} busy=${busy} onClick=${() => run("SetDefaultPolicyVersion", id)}>Set as default<//>`}
          ${!isDefault && may("DeletePolicyVersion") && html`<${Button} kind="plain" icon="trash" label="Delete version ${id}" busy=${busy} onClick=${() => remove(id)} />`}</li>`)}</ul>
    </section>`;
}

function Attached({ arn }) {
  const { data, error, reload } = useResource((signal) => callIam("ListEntitiesForPolicy", { PolicyArn: arn, MaxItems: 1000 }, { signal }), [arn]);
  const found = data ? ENTITIES.flatMap(([field, kind, page]) => data[field].map((one) => ({ kind, page, name: one[`${kind}Name`] }))) : [];
  return html`
    <section class="card stack" aria-labelledby="attached-head"><h2 id="attached-head">Attached to</h2>
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && !found.length && html`<p class="quiet">Nothing yet: open a user, group or role, and attach it there.</p>`}
      <ul class="lines">${found.map((one) => html`<li key=${`${one.kind}/${one.name}`}><a href=${pathTo(["people", one.page, one.name])}>${one.name}</a> <${Badge}>${one.kind.toLowerCase()}<//></li>`)}</ul>
      ${data?.IsTruncated && html`<p class="quiet small">And more.</p>`}
    </section>`;
}

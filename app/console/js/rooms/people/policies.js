import { html, useState } from "../../ui.js";
import { Empty } from "../../components/page.js";
import { Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { Badge, Time } from "../../components/values.js";
import { useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { CreateDialog } from "./create-dialog.js";
import { arnOf, callIam, listAll } from "./iam.js";
import { FilteredTable, ListPage } from "./list-page.js";
import { PolicyEditor } from "./policy-editor.js";
import { IDENTITY_TEMPLATES } from "./templates.js";

const isOfAws = (policy) => policy.Arn.startsWith("arn:aws:iam::aws:");
const COLUMNS = [
  { name: "name", label: "Name", sort: (policy) => policy.PolicyName, render: (policy) =>
    html`<a href=${pathTo(["people", "policies", policy.PolicyName], { arn: policy.Arn })}>${policy.PolicyName}</a> ${isOfAws(policy) && html`<${Badge} title="It comes with the gateway and cannot be changed">built in<//>`}` },
  { name: "description", label: "Description", wideOnly: true, render: (policy) => policy.Description ?? "" },
  { name: "attached", label: "Attached", number: true, sort: (policy) => policy.AttachmentCount ?? -1, render: (policy) => policy.AttachmentCount ?? "–" },
  { name: "updated", label: "Changed", wideOnly: true, sort: (policy) => policy.UpdateDate ?? "", render: (policy) => html`<${Time} value=${policy.UpdateDate} />` },
];

/** The managed policies: those of the account, and the built-in ones. */
export function PoliciesPage({ query, may, tabs }) {
  const { data: policies, error, reload } = useResource((signal) => listAll("ListPolicies", "Policies", {}, { signal }), []);
  const [creating, setCreating] = useState(false);
  const action = may("CreatePolicy", arnOf("policy")) && { label: "Create policy", onClick: () => setCreating(true) };
  const own = policies?.filter((policy) => !isOfAws(policy));
  return html`
    <${ListPage} title="Policies" tabs=${tabs} query=${query} action=${action} count=${policies?.length} error=${error} retry=${reload}>
      ${policies?.length > 0 && html`<${FilteredTable} caption="Managed policies" sortedBy="name" columns=${COLUMNS} rowKey=${(policy) => policy.Arn}
        rows=${policies} query=${query} texts=${(policy) => [policy.PolicyName, policy.Description ?? ""]} />`}
      ${own && !own.length && html`<${Empty} title="No policy of your own yet" action=${action && "Create the first policy"} onAction=${action && action.onClick}>
        A managed policy is written once and attached to many users, groups and roles; a change holds for all of them at once, and earlier versions are kept.<//>`}
    <//>
    ${creating && html`<${CreatePolicy} onClose=${() => setCreating(false)} />`}`;
}

function CreatePolicy({ onClose }) {
  const [text, setText] = useState(IDENTITY_TEMPLATES[0].document);
  const [description, setDescription] = useState("");
  const [problem, setProblem] = useState("");
  const create = async (name) => {
    const { Policy } = await callIam("CreatePolicy", { PolicyName: name, PolicyDocument: text, ...(description ? { Description: description } : {}) });
    toast(`Policy ${name} is made. Attach it to users, groups or roles.`);
    navigate(pathTo(["people", "policies", name], { arn: Policy.Arn }));
  };
  return html`
    <${CreateDialog} title="Create policy" label="Policy name" action="Create policy" create=${create} problem=${problem} wide onClose=${onClose}>
      <${Field} label="Description" hint="It cannot be changed later.">
        ${(control) => html`<input ...${control} value=${description} maxlength="1000" onInput=${(event) => setDescription(event.target.value)} />`}<//>
      <${PolicyEditor} kind="identity" label="Policy" value=${text} onInput=${setText} onProblem=${setProblem} templates=${IDENTITY_TEMPLATES} />
    <//>`;
}

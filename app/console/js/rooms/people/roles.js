import { html, useState } from "../../ui.js";
import { Empty } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Time } from "../../components/values.js";
import { formatSeconds } from "../../format.js";
import { useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { CreateDialog } from "./create-dialog.js";
import { accountNumber, arnOf, callIam, listAll } from "./iam.js";
import { FilteredTable, ListPage } from "./list-page.js";
import { PolicyEditor } from "./policy-editor.js";
import { trustTemplates } from "./templates.js";

const COLUMNS = [
  { name: "name", label: "Name", sort: (role) => role.RoleName, render: (role) => html`<a href=${pathTo(["people", "roles", role.RoleName])}>${role.RoleName}</a>` },
  { name: "description", label: "Description", wideOnly: true, render: (role) => role.Description ?? "" },
  { name: "duration", label: "Longest session", number: true, sort: (role) => role.MaxSessionDuration, render: (role) => formatSeconds(role.MaxSessionDuration) },
  { name: "created", label: "Created", wideOnly: true, sort: (role) => role.CreateDate, render: (role) => html`<${Time} value=${role.CreateDate} />` },
];

/** The roles of the account. */
export function RolesPage({ query, may, tabs }) {
  const { data: roles, error, reload } = useResource((signal) => listAll("ListRoles", "Roles", {}, { signal }), []);
  const [creating, setCreating] = useState(false);
  const action = may("CreateRole", arnOf("role")) && { label: "Create role", onClick: () => setCreating(true) };
  return html`
    <${ListPage} title="Roles" tabs=${tabs} query=${query} action=${action} count=${roles?.length} error=${error} retry=${reload}>
      ${roles && !roles.length && html`<${Empty} title="No roles yet" action=${action && "Create the first role"} onAction=${action && action.onClick}>
        A role lends its rights for an hour or so to those that its trust policy names: applications get temporary keys instead of permanent ones.<//>`}
      ${roles?.length > 0 && html`<${FilteredTable} caption="Roles" sortedBy="name" columns=${COLUMNS} rowKey=${(role) => role.RoleId}
        rows=${roles} query=${query} texts=${(role) => [role.RoleName, role.Path, role.Description ?? ""]} />`}
    <//>
    ${creating && html`<${CreateRole} onClose=${() => setCreating(false)} />`}`;
}

function CreateRole({ onClose }) {
  const templates = trustTemplates(accountNumber());
  const [trust, setTrust] = useState(templates[0].document);
  const [problem, setProblem] = useState("");
  const create = async (name) => {
    await callIam("CreateRole", { RoleName: name, AssumeRolePolicyDocument: trust });
    toast(`Role ${name} is made. It has no rights yet.`);
    navigate(pathTo(["people", "roles", name]));
  };
  return html`
    <${CreateDialog} title="Create role" label="Role name" action="Create role" create=${create} problem=${problem} wide onClose=${onClose}>
      <${PolicyEditor} kind="trust" label="Who may assume it (trust policy)" value=${trust} onInput=${setTrust} onProblem=${setProblem} templates=${templates} />
    <//>`;
}

import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty, Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Copy, Time } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { CreateDialog } from "./create-dialog.js";
import { arnOf, callIam, listAll } from "./iam.js";
import { FilteredTable, ListPage } from "./list-page.js";
import { Picker } from "./picker.js";
import { PoliciesCard } from "./policies-card.js";
import { detachPolicies } from "./removal.js";
import { useRights } from "./rights.js";

const COLUMNS = [
  { name: "name", label: "Name", sort: (group) => group.GroupName, render: (group) => html`<a href=${pathTo(["people", "groups", group.GroupName])}>${group.GroupName}</a>` },
  { name: "path", label: "Path", wideOnly: true, sort: (group) => group.Path, render: (group) => html`<code>${group.Path}</code>` },
  { name: "created", label: "Created", sort: (group) => group.CreateDate, render: (group) => html`<${Time} value=${group.CreateDate} />` },
];

/** The groups of the account. */
export function GroupsPage({ query, may, tabs }) {
  const { data: groups, error, reload } = useResource((signal) => listAll("ListGroups", "Groups", {}, { signal }), []);
  const [creating, setCreating] = useState(false);
  const action = may("CreateGroup", arnOf("group")) && { label: "Create group", onClick: () => setCreating(true) };
  const create = async (name) => {
    await callIam("CreateGroup", { GroupName: name });
    toast(`Group ${name} is made.`);
    navigate(pathTo(["people", "groups", name]));
  };
  return html`
    <${ListPage} title="Groups" tabs=${tabs} query=${query} action=${action} count=${groups?.length} error=${error} retry=${reload}>
      ${groups && !groups.length && html`<${Empty} title="No groups yet" action=${action && "Create the first group"} onAction=${action && action.onClick}>
        A group gives its policies to all its users: make one for each job that several people have.<//>`}
      ${groups?.length > 0 && html`<${FilteredTable} caption="Groups" sortedBy="name" columns=${COLUMNS} rowKey=${(group) => group.GroupId}
        rows=${groups} query=${query} texts=${(group) => [group.GroupName, group.Path]} />`}
    <//>
    ${creating && html`<${CreateDialog} title="Create group" label="Group name" action="Create group" create=${create} onClose=${() => setCreating(false)} />`}`;
}

/** A group: its users and policies. */
export function GroupPage({ name }) {
  const crumbs = [{ label: "People", href: pathTo(["people"]) }, { label: "Groups", href: pathTo(["people", "groups"]) }];
  const { data, error, reload } = useResource(async (signal) => {
    const { Group } = await callIam("GetGroup", { GroupName: name, MaxItems: 1 }, { signal });
    return { group: Group, users: await listAll("GetGroup", "Users", { GroupName: name }, { signal }) };
  }, [name]);
  const { may, known } = useRights([data?.group.Arn ?? arnOf("group", name)]);
  const [remove, removing] = useAction(async () => {
    const details = [data.users.length && `${formatPlural(data.users.length, "user")} lose what only this group gives them`, "its inline policies with their texts"];
    if (!(await confirm({ title: `Delete the group ${name}?`, message: "The users themselves stay.", details: details.filter(Boolean), action: "Delete group", word: name }))) return;
    for (const { UserName } of data.users) await callIam("RemoveUserFromGroup", { GroupName: name, UserName });
    await detachPolicies("Group", name);
    await callIam("DeleteGroup", { GroupName: name });
    toast(`Group ${name} is deleted.`);
    navigate(pathTo(["people", "groups"]));
  });
  return html`
    <${Page} title=${name} crumbs=${crumbs} actions=${data && may("DeleteGroup") && html`<${Button} kind="danger" icon="trash" busy=${removing.busy} onClick=${remove}>Delete group<//>`}>
      <div class="stack">
        <${ErrorNote} error=${error ?? removing.error} retry=${error && reload} />
        ${data && known && html`
          <dl class="facts"><dt>ARN</dt><dd class="row"><code>${data.group.Arn}</code> <${Copy} text=${data.group.Arn} label="Copy ARN" /></dd>
            <dt>Created</dt><dd><${Time} value=${data.group.CreateDate} /></dd></dl>
          <${Members} name=${name} users=${data.users} may=${may} reload=${reload} />
          <${PoliciesCard} kind="Group" name=${name} may=${may} />`}
      </div>
    <//>`;
}

function Members({ name, users, may, reload }) {
  const [adding, setAdding] = useState(false);
  const [run, acting] = useAction(async (action, UserName) => {
    await callIam(action, { GroupName: name, UserName });
    setAdding(false);
    reload();
  });
  const load = async (signal) => {
    const all = await listAll("ListUsers", "Users", {}, { signal });
    return all.filter((one) => users.every((member) => member.UserId !== one.UserId)).map((one) => ({ value: one.UserName, label: one.UserName }));
  };
  return html`
    <section class="card stack" aria-labelledby="members-head">
      <div class="row"><h2 class="grow" id="members-head">Users</h2>
        ${may("AddUserToGroup") && html`<${Button} icon="plus" onClick=${() => setAdding(true)}>Add user<//>`}</div>
      <${ErrorNote} error=${acting.error} />
      ${users.length ? html`<ul class="lines">${users.map((user) => html`
        <li class="row" key=${user.UserId}><a class="grow" href=${pathTo(["people", "users", user.UserName])}>${user.UserName}</a>
          ${may("RemoveUserFromGroup") && html`<${Button} kind="plain" icon="close" label="Remove ${user.UserName}" busy=${acting.busy}
            onClick=${() => run("RemoveUserFromGroup", user.UserName)} />`}</li>`)}</ul>` : html`<p class="quiet">Nobody yet.</p>`}
    </section>
    ${adding && html`<${Picker} title="Add a user to ${name}" label="User" action="Add" load=${load} choose=${(user) => run("AddUserToGroup", user)}
      onClose=${() => setAdding(false)} empty="All users are in it already." />`}`;
}

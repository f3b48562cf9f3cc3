import { html, useEffect, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Badge, Time } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { CreateDialog } from "./create-dialog.js";
import { arnOf, callIam } from "./iam.js";
import { idleReason } from "./idle.js";
import { LastUse } from "./last-use.js";
import { FilteredTable, ListPage } from "./list-page.js";

const COLUMNS = (since) => [
  { name: "name", label: "Name", sort: (user) => user.name, render: (user) => html`<a href=${pathTo(["people", "users", user.name])}>${user.name}</a>` },
  { name: "path", label: "Path", wideOnly: true, sort: (user) => user.path, render: (user) => html`<code>${user.path}</code>` },
  { name: "keys", label: "Access keys", sort: (user) => user.keys?.length ?? -1, render: (user) => renderKeys(user, since) },
  { name: "used", label: "Last used", sort: (user) => user.last_used, render: (user) => html`<${LastUse} used=${user.last_used} since=${since} created=${user.created} />` },
  { name: "created", label: "Created", wideOnly: true, sort: (user) => user.created, render: (user) => html`<${Time} value=${user.created} />` },
];

function renderKeys(user, since) {
  if (!user.keys) return "–";
  const active = user.keys.filter((key) => key.active).length;
  if (!user.keys.length) return html`<span class="quiet">none</span>`;
  const idle = user.keys.map((key) => idleReason({ ...key, used: key.last_used }, since)).find(Boolean);
  return html`${active} active${active < user.keys.length && html` <${Badge}>${user.keys.length - active} disabled<//>`}${idle && html` <${Badge} kind="warn">${idle}<//>`}`;
}

/** The users of the account, a page of them at a time. */
export function UsersPage({ query, may, tabs }) {
  const first = useResource((signal) => callApi("GET", "people/users", { signal }), []);
  const [more, setMore] = useState([]);
  const [creating, setCreating] = useState(false);
  useEffect(() => setMore([]), [first.data]);
  const pages = first.data ? [first.data, ...more] : [];
  const next = pages.at(-1)?.next;
  const [load, loading] = useAction(async () => {
    const page = await callApi("GET", "people/users", { query: { after: next } });
    setMore([...more, page]);
  });
  const users = pages.flatMap((page) => page.users);
  const action = may("CreateUser", arnOf("user")) && { label: "Create user", onClick: () => setCreating(true) };
  return html`
    <${ListPage} title="Users" tabs=${tabs} query=${query} action=${action} count=${users.length} error=${first.error} retry=${first.reload}>
      ${first.data && !users.length && html`
        <${Empty} title="No users yet" action=${action && "Create the first user"} onAction=${action && action.onClick}>
          Give each person and each application a user of its own, with no more rights than it needs: its key can then be rotated or disabled alone.<//>`}
      ${users.length > 0 && html`<${FilteredTable} caption="Users" sortedBy="name" rows=${users} query=${query} texts=${(user) => [user.name, user.path]}
        columns=${COLUMNS(first.data.uses_since)} rowKey=${(user) => user.id} />`}
      ${next && html`<div class="row"><${Button} onClick=${load} busy=${loading.busy}>Show more<//>
        <span class="quiet small">${formatPlural(users.length, "user")} shown; the filter looks among these.</span></div>`}
      <${ErrorNote} error=${loading.error} />
    <//>
    ${creating && html`<${CreateUser} onClose=${() => setCreating(false)} />`}`;
}

function CreateUser({ onClose }) {
  const create = async (name) => {
    await callIam("CreateUser", { UserName: name });
    toast(`User ${name} is made. It has no rights and no key yet.`);
    navigate(pathTo(["people", "users", name]));
  };
  return html`<${CreateDialog} title="Create user" label="User name" action="Create user" create=${create} onClose=${onClose}
    hint="One for each person or application. It has no rights until you give it a policy or a group." />`;
}

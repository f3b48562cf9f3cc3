// The room of accounts, users, groups, roles, policies, keys and temporary credentials.
import { html, useEffect } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { loadStyle } from "../../components/style.js";
import { Empty } from "../../components/page.js";
import { useCommands } from "../../components/palette.js";
import { navigate, pathTo } from "../../router.js";
import { may as mayAdminister, session } from "../../session.js";
import { AccountPage, AccountsPage } from "./accounts.js";
import { ConnectPage } from "./connect.js";
import { GroupPage, GroupsPage } from "./groups.js";
import { arnOf } from "./iam.js";
import { KeysPage } from "./keys.js";
import { PoliciesPage, PolicyPage } from "./policies.js";
import { useRights } from "./rights.js";
import { RolePage, RolesPage } from "./roles.js";
import { SimulatorTab } from "./simulator-tab.js";
import { TemporaryPage } from "./temporary.js";
import { UserPage } from "./user.js";
import { UsersPage } from "./users.js";

await loadStyle(import.meta.url, "people.css");

const KINDS = ["user", "group", "role", "policy"];
const PAGES = [
  { name: "users", label: "Users", list: UsersPage, one: UserPage, kind: "user", operation: "ListUsers" },
  { name: "groups", label: "Groups", list: GroupsPage, one: GroupPage, kind: "group", operation: "ListGroups" },
  { name: "roles", label: "Roles", list: RolesPage, one: RolePage, kind: "role", operation: "ListRoles" },
  { name: "policies", label: "Policies", list: PoliciesPage, one: PolicyPage, kind: "policy", operation: "ListPolicies" },
  { name: "keys", label: "My access keys", list: KeysPage, own: "ListAccessKeys" },
  { name: "temporary", label: "Temporary credentials", list: TemporaryPage },
  { name: "simulator", label: "Simulator", list: SimulatorTab, own: "SimulatePrincipalPolicy" },
  { name: "connect", label: "Connect", list: ConnectPage },
  { name: "accounts", label: "Accounts", list: AccountsPage, one: AccountPage, administers: "sluice:ListAccounts" },
];

/** Shows the page of a path below /console/people. */
export default function People({ segments, query }) {
  const self = session.peek().arn;
  const { may, known, error, reload } = useRights([...KINDS.map((kind) => arnOf(kind)), self]);
  const isOpen = (one) =>
    (!one.operation || may(one.operation, arnOf(one.kind))) && (!one.own || may(one.own, self)) && (!one.administers || mayAdminister(one.administers));
  const open = known ? PAGES.filter(isOpen) : [];
  const [name, item] = segments;
  const page = PAGES.find((one) => one.name === name);
  useEffect(() => {
    if (!name && open.length) navigate(pathTo(["people", open[0].name]), { replace: true });
  }, [name, open.length]);
  useCommands("people", () => open.map((one) => ({ label: one.label, hint: "page", href: pathTo(["people", one.name]) })), [open.length]);
  if (error && !known) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  if (!known || !name) return null;
  // a user may see a page of itself, though not the list
  const View = item ? page?.one : open.includes(page) && page.list;
  if (!View) return html`<${Empty} title="No such page" action="To the people" href=${pathTo(["people"])}>There is nothing here, or you have no right to see it.<//>`;
  const tabs = open.map((one) => ({ label: one.label, href: pathTo(["people", one.name]), current: one === page }));
  return html`<${View} key=${item ?? ""} name=${item} query=${query} may=${may} tabs=${tabs} />`;
}

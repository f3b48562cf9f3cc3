// The room of accounts, users, groups, roles, policies, keys and temporary credentials.
import { html, useEffect } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { loadStyle } from "../../components/style.js";
import { Empty } from "../../components/page.js";
import { navigate, pathTo } from "../../router.js";
import { AccountPage, AccountsPage } from "./accounts.js";
import { ConnectPage } from "./connect.js";
import { GroupPage, GroupsPage } from "./groups.js";
import { KeysPage } from "./keys.js";
import { concernedArns, openPages } from "./pages.js";
import { PoliciesPage, PolicyPage } from "./policies.js";
import { useRights } from "./rights.js";
import { RolePage, RolesPage } from "./roles.js";
import { SimulatorTab } from "./simulator-tab.js";
import { TemporaryPage } from "./temporary.js";
import { UserPage } from "./user.js";
import { UsersPage } from "./users.js";

await loadStyle(import.meta.url, "people.css");

const VIEWS = {
  __proto__: null,
  users: [UsersPage, UserPage],
  groups: [GroupsPage, GroupPage],
  roles: [RolesPage, RolePage],
  policies: [PoliciesPage, PolicyPage],
  keys: [KeysPage],
  temporary: [TemporaryPage],
  simulator: [SimulatorTab],
  connect: [ConnectPage],
  accounts: [AccountsPage, AccountPage],
};

/** Shows the page of a path below /console/people. */
export default function People({ segments, query }) {
  const { may, known, error, reload } = useRights(concernedArns());
  const open = known ? openPages(may) : [];
  const [name, item] = segments;
  useEffect(() => {
    if (!name && open.length) navigate(open[0].href, { replace: true });
  }, [name, open.length]);
  if (error && !known) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  if (!known || !name) return null;
  // a user may see a page of itself, though not the list
  const [List, One] = VIEWS[name] ?? [];
  const View = item ? One : open.some((one) => one.name === name) && List;
  if (!View) return html`<${Empty} title="No such page" action="To the people" href=${pathTo(["people"])}>There is nothing here, or you have no right to see it.<//>`;
  const tabs = open.map((one) => ({ label: one.label, href: one.href, current: one.name === name }));
  return html`<${View} key=${item ?? ""} name=${item} query=${query} may=${may} tabs=${tabs} />`;
}

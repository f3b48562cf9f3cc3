// The room of accounts, users, groups, roles, policies, keys and temporary credentials.
import { html, useEffect } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { Loaded } from "../../components/lazy.js";
import { loadStyle } from "../../components/style.js";
import { Empty } from "../../components/page.js";
import { navigate, page, pathTo } from "../../router.js";
import { concernedArns, openPages } from "./pages.js";
import { useRights } from "./rights.js";

/** Loads what shows a list, and what shows one of it. */
const VIEWS = {
  __proto__: null,
  users: [async () => (await import("./users.js")).UsersPage, async () => (await import("./user.js")).UserPage],
  groups: [async () => (await import("./groups.js")).GroupsPage, async () => (await import("./groups.js")).GroupPage],
  roles: [async () => (await import("./roles.js")).RolesPage, async () => (await import("./role.js")).RolePage],
  policies: [async () => (await import("./policies.js")).PoliciesPage, async () => (await import("./policy.js")).PolicyPage],
  keys: [async () => (await import("./keys.js")).KeysPage],
  temporary: [async () => (await import("./temporary.js")).TemporaryPage],
  simulator: [async () => (await import("../simulator/simulator.js")).default],
  connect: [async () => (await import("./connect.js")).ConnectPage],
  accounts: [async () => (await import("./accounts.js")).AccountsPage, async () => (await import("./account.js")).AccountPage],
};
const viewOf = ([name, item]) => VIEWS[name]?.[item ? 1 : 0];

viewOf(page.peek().segments.slice(1))?.().catch(() => {}); // comes beside the style and the rights; the room says what is missing
await loadStyle(import.meta.url, "people.css");

/** Shows the page of a path below /console/people. */
export default function People({ segments, query }) {
  const { may, known, error, reload } = useRights(concernedArns());
  const open = known ? openPages(may) : [];
  const [name, item] = segments;
  // a user may see a page of itself, though not the list
  const view = (item || open.some((one) => one.name === name)) && viewOf(segments);
  useEffect(() => {
    if (!name && open.length) navigate(open[0].href, { replace: true });
  }, [name, open.length]);
  if (error && !known) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  if (!known || !name) return null;
  if (!view) return html`<${Empty} title="No such page" action="To the people" href=${pathTo(["people"])}>There is nothing here, or you have no right to see it.<//>`;
  const tabs = open.map((one) => ({ label: one.label, href: one.href, current: one.name === name }));
  return html`<${Loaded} load=${view} name=${item} query=${query} may=${may} tabs=${tabs} />`;
}

import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Badge } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { may } from "../../session.js";
import { CreateAccount } from "./create-account.js";
import { LastUse } from "./last-use.js";
import { FilteredTable, ListPage } from "./list-page.js";
import { SecretDialog } from "./secret-dialog.js";

const PAGE_ACCOUNTS = 100;
const COLUMNS = [
  { name: "name", label: "Name", sort: (one) => one.display_name, render: (one) => html`<a href=${pathTo(["people", "accounts", one.id])}>${one.display_name || one.id}</a> <${AccountBadges} account=${one} />` },
  { name: "email", label: "E-mail", wideOnly: true, sort: (one) => one.email, render: (one) => one.email },
  { name: "users", label: "Users", number: true, sort: (one) => one.users, render: (one) => one.users },
  { name: "buckets", label: "Buckets", number: true, sort: (one) => one.buckets, render: (one) => one.buckets },
  { name: "keys", label: "Own keys", number: true, wideOnly: true, sort: (one) => one.keys.length, render: (one) => one.keys.length },
  { name: "used", label: "Last used", sort: (one) => one.last_used, render: (one) => html`<${LastUse} used=${one.last_used} />` },
];

/** What is special about an account. */
export function AccountBadges({ account }) {
  return html`${account.root && html`<${Badge} kind="accent" title="It administers the gateway">first<//> `}${account.disabled && html`<${Badge} kind="warn">disabled<//>`}`;
}

/** The accounts of the gateway: each owns buckets, and has users of its own. */
export function AccountsPage({ query, tabs }) {
  const first = useResource((signal) => callApi("GET", "accounts", { query: { limit: PAGE_ACCOUNTS }, signal }), []);
  const [more, setMore] = useState([]);
  const [made, setMade] = useState(null);
  const [creating, setCreating] = useState(false);
  const all = [...(first.data ?? []), ...more];
  const isFull = all.length > 0 && all.length % PAGE_ACCOUNTS === 0;
  const [load, loading] = useAction(async () => {
    const last = all.at(-1);
    setMore([...more, ...await callApi("GET", "accounts", { query: { limit: PAGE_ACCOUNTS, after: `${last.created}:${last.id}` } })]);
  });
  const action = may("sluice:ManageAccounts") && { label: "Create account", onClick: () => setCreating(true) };
  const done = (account) => {
    setCreating(false);
    setMade(account);
  };
  return html`
    <${ListPage} title="Accounts" tabs=${tabs} query=${query} action=${action} count=${all.length} error=${first.error} retry=${first.reload}>
      <p class="quiet">An account owns buckets and has users, groups and roles of its own. Most need only the first one, with users.</p>
      ${first.data && html`<${FilteredTable} caption="Accounts" columns=${COLUMNS} rowKey=${(one) => one.id}
        rows=${all} query=${query} texts=${(one) => [one.display_name, one.email, one.id, ...one.access_keys]} />`}
      ${isFull && html`<div><${Button} onClick=${load} busy=${loading.busy}>Show more<//></div>`}
      <${ErrorNote} error=${loading.error} />
    <//>
    ${creating && html`<${CreateAccount} onDone=${done} onClose=${() => setCreating(false)} />`}
    ${made && html`<${SecretDialog} title="The first key of the account" owner=${made.display_name} credentials=${{ accessKey: made.access_key, secretKey: made.secret_key }}
      onClose=${() => navigate(pathTo(["people", "accounts", made.id]))} />`}`;
}

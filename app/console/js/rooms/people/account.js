import { html } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Copy, Time } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { may, session } from "../../session.js";
import { AccountBadges } from "./accounts.js";
import { KeysCard } from "./keys-card.js";
import { LastUse } from "./last-use.js";

const CRUMBS = [{ label: "People", href: pathTo(["people"]) }, { label: "Accounts", href: pathTo(["people", "accounts"]) }];

/** An account, for who administers the gateway: its keys, what it has, on and off, and its end. */
export function AccountPage({ name: id }) {
  const path = `accounts/${encodeURIComponent(id)}`;
  const { data: account, error, reload } = useResource((signal) => callApi("GET", path, { signal }), [id]);
  const [change, changing] = useAction(async (disabled) => {
    if (disabled && !(await confirm(disabling(account)))) return;
    await callApi("PATCH", path, { body: { disabled } });
    toast(disabled ? "The account is disabled." : "The account is enabled.");
    reload();
  });
  const [remove, removing] = useAction(async () => {
    if (!(await confirm(removal(account)))) return;
    await callApi("DELETE", path);
    toast("The account is deleted.");
    navigate(pathTo(["people", "accounts"]));
  });
  const title = account ? account.display_name || account.id : "Account";
  const manages = account && !account.root && may("sluice:ManageAccounts");
  const actions = manages && html`
    <${Button} busy=${changing.busy} onClick=${() => change(!account.disabled)}>${account.disabled ? "Enable account" : "Disable account"}<//>
    <${Button} kind="danger" icon="trash" busy=${removing.busy} disabled=${account.buckets > 0}
      why="It owns buckets: delete them first" onClick=${remove}>Delete account<//>`;
  return html`
    <${Page} title=${title} crumbs=${CRUMBS} actions=${actions}>
      <div class="stack">
        <${ErrorNote} error=${error ?? changing.error ?? removing.error} retry=${error && reload} />
        ${account && html`
          <div class="row"><${AccountBadges} account=${account} /></div>
          <dl class="facts">
            <dt>Canonical id</dt><dd class="row"><code>${account.id}</code> <${Copy} text=${account.id} label="Copy id" /></dd>
            ${account.email && html`<dt>E-mail</dt><dd>${account.email}</dd>`}
            <dt>Created</dt><dd><${Time} value=${account.created} /></dd>
            <dt>Last used</dt><dd><${LastUse} used=${account.last_used} /></dd>
            <dt>It has</dt><dd>${belongings(account).join(", ")}</dd>
          </dl>
          ${account.root && html`<p class="note">This account administers the gateway. It cannot be disabled or deleted; a key that the gateway's settings name comes back at its next start.</p>`}
          ${(manages || (account.root && session.peek().root)) && html`
            <${KeysCard} whose=${{}} owner=${title} account=${account.id} may=${() => true} onChange=${reload} />`}`}
      </div>
    <//>`;
}

function belongings(account) {
  return [
    formatPlural(account.buckets, "bucket"), formatPlural(account.users, "user"), formatPlural(account.groups, "group"),
    formatPlural(account.roles, "role"), formatPlural(account.policies, "policy", "policies"),
  ];
}

function disabling(account) {
  return {
    title: `Disable ${account.display_name || account.id}?`,
    message: "All its keys, users and sessions are refused at once. Its buckets and objects stay; others keep the access that policies give them.",
    details: belongings(account), action: "Disable account",
  };
}

function removal(account) {
  return {
    title: `Delete ${account.display_name || account.id}?`,
    message: "It cannot be brought back. It owns no buckets; deleted with it are:",
    details: [formatPlural(account.keys.length, "access key"), ...belongings(account).slice(1), "all their keys, policies, temporary credentials and sessions"],
    action: "Delete account", word: account.display_name || account.id,
  };
}

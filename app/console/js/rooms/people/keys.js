import { html } from "../../ui.js";
import { session } from "../../session.js";
import { ownName } from "./iam.js";
import { KeysCard } from "./keys-card.js";
import { ListPage } from "./list-page.js";
import { useRights } from "./rights.js";

/** The keys of who is signed in: the user's, or the account's own. */
export function KeysPage({ query, tabs }) {
  const { arn, root } = session.peek();
  const rights = useRights([arn]);
  const name = ownName();
  return html`
    <${ListPage} title="My access keys" tabs=${tabs} query=${query}>
      ${!name && html`<p class="note warn">These keys may do everything in the account. For daily work, make users and give them what they need.
        ${root && " The key that the gateway's settings name comes back at its next start: change it there."}</p>`}
      ${rights.known && html`<${KeysCard} whose=${name ? { UserName: name } : {}} owner=${name || "the account"} may=${rights.may} />`}
    <//>`;
}

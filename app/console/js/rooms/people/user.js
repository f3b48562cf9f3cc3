import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { Copy, Time } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { callIam, listAll } from "./iam.js";
import { GroupsCard } from "./groups-card.js";
import { KeysCard } from "./keys-card.js";
import { PoliciesCard } from "./policies-card.js";
import { detachPolicies } from "./removal.js";
import { useRights } from "./rights.js";

const CRUMBS = [{ label: "People", href: pathTo(["people"]) }, { label: "Users", href: pathTo(["people", "users"]) }];

/** A user: keys, groups, policies. */
export function UserPage({ name }) {
  const { data, error, reload } = useResource((signal) => callIam("GetUser", { UserName: name }, { signal }), [name]);
  if (!data) return html`<${Page} title=${name} crumbs=${CRUMBS}><${ErrorNote} error=${error} retry=${reload} /><//>`;
  return html`<${LoadedUser} user=${data.User} />`;
}

function LoadedUser({ user }) {
  const name = user.UserName;
  const { may, known, error: unknown, reload } = useRights([user.Arn]);
  const [round, setRound] = useState(0);
  const [remove, removing] = useAction(async () => {
    if (!(await confirmRemoval(name))) return;
    try {
      await removeUser(name);
    } catch (error) {
      setRound((before) => before + 1); // a part may be gone
      throw error;
    }
  });
  const mayRemove = ["DeleteUser", "ListAccessKeys", "DeleteAccessKey", "ListUserPolicies", "ListAttachedUserPolicies", "ListGroupsForUser"].every((one) => may(one));
  return html`
    <${Page} title=${name} crumbs=${CRUMBS} actions=${mayRemove && html`<${Button} kind="danger" icon="trash" busy=${removing.busy} onClick=${remove}>Delete user<//>`}>
      <div class="stack together" aria-busy=${!known && !unknown} key=${round}>
        <${ErrorNote} error=${removing.error} /><${ErrorNote} error=${unknown} retry=${reload} />
        <dl class="facts">
          <dt>ARN</dt><dd class="row"><code>${user.Arn}</code> <${Copy} text=${user.Arn} label="Copy ARN" /></dd>
          <dt>Id</dt><dd><code>${user.UserId}</code></dd>
          <dt>Created</dt><dd><${Time} value=${user.CreateDate} /></dd>
        </dl>
        ${known && may("ListAccessKeys") && html`<${KeysCard} whose=${{ UserName: name }} owner=${name} may=${may} />`}
        ${known && may("ListGroupsForUser") && html`<${GroupsCard} name=${name} />`}
        ${known && html`<${PoliciesCard} kind="User" name=${name} may=${may} />`}
      </div>
    <//>`;
}

/** Reads what a user has, and asks before it is lost. */
async function confirmRemoval(name) {
  const owned = await readBelongings(name);
  const active = owned.keys.filter((key) => key.Status === "Active").map((key) => key.AccessKeyId);
  return confirm({
    title: `Delete the user ${name}?`,
    message: "The user cannot be brought back. One of the same name is somebody else: policies that name this user do not name that one.",
    details: [
      owned.keys.length && `${formatPlural(owned.keys.length, "access key")}${active.length ? `, of which ${active.join(" and ")} may be in use` : ""}`,
      owned.inline.length && `the texts of ${formatPlural(owned.inline.length, "inline policy", "inline policies")}: ${owned.inline.join(", ")}`,
      owned.attached.length && `${formatPlural(owned.attached.length, "attachment")} of managed policies, which themselves stay`,
      owned.groups.length && `membership in ${owned.groups.map((one) => one.GroupName).join(", ")}`,
      "all temporary credentials and sessions of the console, at once",
    ].filter(Boolean),
    action: "Delete user",
    word: name,
  });
}

async function readBelongings(name) {
  const of = { UserName: name };
  const [keys, inline, attached, groups] = await Promise.all([
    listAll("ListAccessKeys", "AccessKeyMetadata", of), listAll("ListUserPolicies", "PolicyNames", of),
    listAll("ListAttachedUserPolicies", "AttachedPolicies", of), listAll("ListGroupsForUser", "Groups", of),
  ]);
  return { keys, inline, attached, groups };
}

/** Removes what IAM asks to be removed first, keys before all else, and then the user. */
async function removeUser(name) {
  const UserName = name;
  const { keys, groups } = await readBelongings(name);
  for (const { AccessKeyId } of keys) await callIam("DeleteAccessKey", { UserName, AccessKeyId });
  await detachPolicies("User", name);
  for (const { GroupName } of groups) await callIam("RemoveUserFromGroup", { UserName, GroupName });
  await callIam("DeleteUser", { UserName });
  toast(`User ${name} is deleted.`);
  navigate(pathTo(["people", "users"]));
}

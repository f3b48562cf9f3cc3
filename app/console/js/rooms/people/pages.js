// The pages of the room People, and which of them a session may open; the palette knows them before the room is loaded.
import { pathTo } from "../../router.js";
import { may as mayAdminister, session } from "../../session.js";
import { arnOf } from "./iam.js";
import { loadRights } from "./rights.js";

/** `kind` and `operation`: the right to list that; `own`: a right on oneself; `administers`: an action of the gateway. */
const PAGES = [
  { name: "users", label: "Users", kind: "user", operation: "ListUsers" },
  { name: "groups", label: "Groups", kind: "group", operation: "ListGroups" },
  { name: "roles", label: "Roles", kind: "role", operation: "ListRoles" },
  { name: "policies", label: "Policies", kind: "policy", operation: "ListPolicies" },
  { name: "keys", label: "My access keys", own: "ListAccessKeys" },
  { name: "temporary", label: "Temporary credentials" },
  { name: "simulator", label: "Simulator", own: "SimulatePrincipalPolicy" },
  { name: "connect", label: "Connect" },
  { name: "accounts", label: "Accounts", administers: "sluice:ListAccounts" },
];

/** Returns what the rights of a session must be known for. */
export function concernedArns() {
  return [...PAGES.filter((one) => one.kind).map((one) => arnOf(one.kind)), session.peek().arn];
}

/** Returns the pages that a session may open, with their addresses; `may` is that of its rights. */
export function openPages(may) {
  const self = session.peek().arn;
  return PAGES.filter((one) => (!one.operation || may(one.operation, arnOf(one.kind))) && (!one.own || may(one.own, self))
    && (!one.administers || mayAdminister(one.administers))).map((one) => ({ ...one, href: pathTo(["people", one.name]) }));
}

/** Loads the pages for the palette. */
export async function loadCommands(signal) {
  return openPages(await loadRights(concernedArns(), signal)).map(({ label, href }) => ({ label, hint: "page", href }));
}

// Operations of IAM and STS, as the caller, and the ARNs of the caller's account.
import { callApi } from "../../api.js";
import { session } from "../../session.js";

const PAGE_ITEMS = 1000;
const MAX_ITEMS = 5000;

/** Runs an operation: callIam("CreateUser", { UserName }). `account`: as that account itself, for who manages accounts. */
export function callIam(action, parameters = {}, { signal, account } = {}) {
  if (account) return callApi("POST", `accounts/${encodeURIComponent(account)}/iam/${action}`, { body: { parameters }, signal });
  return callApi("POST", "iam", { body: { action, parameters }, signal });
}

/** Returns all entries of a list, which IAM bounds itself. */
export async function listAll(action, field, parameters = {}, options = {}) {
  const found = [];
  for (let marker; ;) {
    const page = await callIam(action, { ...parameters, MaxItems: PAGE_ITEMS, ...(marker ? { Marker: marker } : {}) }, options);
    found.push(...page[field]);
    if (!page.IsTruncated || found.length >= MAX_ITEMS) return found;
    marker = page.Marker;
  }
}

/** Returns the caller's account as ARNs name it. */
export function accountNumber() {
  return session.peek().arn.split(":")[4];
}

/** Returns the ARN of a user, group, role or policy of the caller's account with the path "/"; it need not exist. */
export function arnOf(kind, name = "") {
  return `arn:aws:iam::${accountNumber()}:${kind}/${name}`;
}

/** Returns the name of the user who is signed in; "" for the account itself. */
export function ownName() {
  return session.peek().kind === "User" ? session.peek().name : "";
}

/** Asks the gateway what is wrong with a policy; for CodeEditor. */
export function policyCheck(kind) {
  return async (document, signal) => (await callApi("POST", "policy-checks", { body: { kind, document }, signal })).problem;
}

/** Returns a stored policy with line breaks. */
export function readablePolicy(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // older versions may have stored anything
  }
}

/** What IAM takes as a name. */
export const NAME_PATTERN = /^[\w+=,.@-]{1,64}$/;

/** Returns what is wrong with a name, or "". */
export function nameProblem(name) {
  if (!name || NAME_PATTERN.test(name)) return "";
  return name.length > 64 ? "At most 64 characters." : "Letters, digits and + = , . @ _ - only.";
}

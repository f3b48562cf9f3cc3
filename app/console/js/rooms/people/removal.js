// What IAM asks to be taken from a user, group or role before it can be deleted.
import { callIam, listAll } from "./iam.js";

/** Removes the inline policies of a user, group or role, and detaches the managed ones. `kind`: User, Group or Role. */
export async function detachPolicies(kind, name) {
  const of = { [`${kind}Name`]: name };
  const [inline, attached] = await Promise.all([
    listAll(`List${kind}Policies`, "PolicyNames", of), listAll(`ListAttached${kind}Policies`, "AttachedPolicies", of),
  ]);
  for (const PolicyName of inline) await callIam(`Delete${kind}Policy`, { ...of, PolicyName });
  for (const { PolicyArn } of attached) await callIam(`Detach${kind}Policy`, { ...of, PolicyArn });
}

// The access control list of a bucket: its owner, and grants to accounts and groups.
import { html } from "../../../../ui.js";
import { pathTo } from "../../../../router.js";
import { readSetting } from "../../../../s3.js";
import { useResource } from "../../../../resource.js";
import { childOf, childrenOf, S3_NAMESPACE, textOf, toXml } from "../../../../xml.js";
import { RuleList, Select, TextInput } from "../inputs.js";

const XSI = "http://www.w3.org/2001/XMLSchema-instance";
const GROUPS = "http://acs.amazonaws.com/groups/";
const GRANTEES = [
  ["CanonicalUser", "An account"], [`${GROUPS}global/AllUsers`, "Everybody"], [`${GROUPS}global/AuthenticatedUsers`, "Everybody with a key"], [`${GROUPS}s3/LogDelivery`, "Delivery of access logs"],
];
const PERMISSIONS = [
  ["READ", "List the objects"], ["WRITE", "Write and delete objects"], ["READ_ACP", "Read this list"], ["WRITE_ACP", "Change this list"], ["FULL_CONTROL", "All of these"],
];

function read(root) {
  const list = childOf(root, "AccessControlList");
  const grants = (list ? childrenOf(list, "Grant") : []).map((grant) => {
    const grantee = childOf(grant, "Grantee");
    const uri = textOf(grantee, "URI");
    return { grantee: uri ?? "CanonicalUser", id: textOf(grantee, "ID") ?? "", shown: textOf(grantee, "DisplayName"), permission: textOf(grant, "Permission") };
  });
  return { owner: { id: textOf(root, "Owner", "ID"), shown: textOf(root, "Owner", "DisplayName") }, grants };
}

function write({ owner, grants }) {
  const entries = grants.map(({ grantee, id, shown, permission }) => {
    const account = grantee === "CanonicalUser";
    const inside = account ? [["ID", id], ["DisplayName", shown]] : [["URI", grantee]];
    return ["Grant", [["Grantee", inside, `xmlns:xsi="${XSI}" xsi:type="${account ? "CanonicalUser" : "Group"}"`], ["Permission", permission]]];
  });
  return toXml("AccessControlPolicy", [["Owner", [["ID", owner.id], ["DisplayName", owner.shown]]], ["AccessControlList", entries]], S3_NAMESPACE);
}

function Form({ value, bucket, problems, onChange }) {
  const { data: ownership } = useResource((signal) => readSetting({ bucket: bucket.name, query: { ownershipControls: "" }, signal }, "OwnershipControlsNotFoundError"), [bucket.name]);
  const off = ownership && textOf(ownership, "Rule", "ObjectOwnership") === "BucketOwnerEnforced";
  const set = (grants) => onChange({ ...value, grants });
  return html`
    <div class="stack">
      ${off && html`<p class="note">ACLs are off in this bucket: its owner alone has rights, and policies give more.
        <a href=${pathTo(["buckets", bucket.name, "settings", "ownership"])}>Object ownership</a> turns them on.</p>`}
      <p>Owner: <code>${value.owner.id}</code>${value.owner.shown && ` (${value.owner.shown})`}</p>
      ${!off && html`<${RuleList} noun="Grant" path="grants" rules=${value.grants} problems=${problems} onChange=${set}
        create=${() => ({ grantee: "CanonicalUser", id: "", shown: null, permission: "READ" })}
        render=${(grant, change, problem) => html`
          <div class="columns">
            <${Select} label="To" value=${grant.grantee} options=${GRANTEES} onChange=${(grantee) => change({ grantee, id: "", shown: null })} />
            ${grant.grantee === "CanonicalUser" && html`<${TextInput} label="Canonical id" value=${grant.id} hint=${grant.shown} problem=${problem("id")} onInput=${(id) => change({ id: id.trim(), shown: null })} />`}
            <${Select} label="May" value=${grant.permission} options=${PERMISSIONS} onChange=${(permission) => change({ permission })} />
          </div>`} />`}
    </div>`;
}

export default {
  name: "acl",
  title: "Access control list",
  about: "The older way to let other accounts or everybody into the bucket. Where you can, use a policy.",
  query: { acl: "" },
  root: "AccessControlPolicy",
  read,
  write,
  summary: ({ grants, owner }) => {
    const others = grants.filter((grant) => grant.id !== owner.id);
    return others.length ? others.map((grant) => `${GRANTEES.find(([name]) => name === grant.grantee)[1].toLowerCase()}: ${grant.permission}`).join(", ") : "only the owner";
  },
  problems: ({ grants }) => Object.fromEntries(grants.map((grant, index) => [`grants.${index}.id`, grant.grantee === "CanonicalUser" && !grant.id ? "Write the account's canonical id." : ""])),
  Form,
};

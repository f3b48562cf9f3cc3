// The public access block of a bucket: what is refused whatever policies and ACLs say.
import { html } from "../../../../ui.js";
import { Check } from "../../../../components/field.js";
import { Button } from "../../../../components/button.js";
import { documentOf, flag } from "../shape.js";

const PARTS = [
  ["blockAcls", "Refuse new public ACLs", "Requests that would set a public ACL on the bucket or on an object fail."],
  ["ignoreAcls", "Ignore public ACLs", "ACLs that let everybody in have no effect, also those that are there."],
  ["blockPolicy", "Refuse new public policies", "A bucket policy that lets everybody in cannot be saved."],
  ["restrict", "Restrict public policies", "A public policy that is there lets only the owner's own users in."],
];
const FIELDS = { blockAcls: flag("BlockPublicAcls"), ignoreAcls: flag("IgnorePublicAcls"), blockPolicy: flag("BlockPublicPolicy"), restrict: flag("RestrictPublicBuckets") };

function Form({ value, onChange }) {
  const all = (on) => onChange(Object.fromEntries(PARTS.map(([name]) => [name, on])));
  return html`
    <div class="stack">
      <div class="row"><${Button} onClick=${() => all(true)}>Block all<//><${Button} onClick=${() => all(false)}>Block nothing<//></div>
      ${PARTS.map(([name, label, hint]) => html`<${Check} key=${name} label=${label} hint=${hint} checked=${Boolean(value[name])} onChange=${(on) => onChange({ ...value, [name]: on })} />`)}
    </div>`;
}

export default {
  name: "public-access",
  title: "Public access block",
  about: "A safeguard above policies and ACLs: with all four, nobody gets in without a key, whatever else is configured.",
  query: { publicAccessBlock: "" },
  absent: ["NoSuchPublicAccessBlockConfiguration"],
  root: "PublicAccessBlockConfiguration",
  ...documentOf("PublicAccessBlockConfiguration", FIELDS),
  empty: () => ({ blockAcls: false, ignoreAcls: false, blockPolicy: false, restrict: false }),
  nothing: "nothing is blocked",
  summary: (value) => {
    const on = PARTS.filter(([name]) => value[name]);
    return on.length === PARTS.length ? "all public access is blocked" : on.length ? on.map(([, label]) => label.toLowerCase()).join(", ") : "nothing is blocked";
  },
  question: (value, before) => (PARTS.some(([name]) => before[name] && !value[name])
    ? { title: "Allow public access?", message: "Policies and ACLs that let everybody in can take effect then, also those that are there already.", action: "Allow it" } : null),
  loss: "All four blocks go. Policies and ACLs that let everybody in take effect.",
  Form,
};

// Object ownership: who owns what others write, and whether ACLs apply.
import { html } from "../../../../ui.js";
import { Select } from "../inputs.js";
import { child, documentOf, text } from "../shape.js";

const CHOICES = [
  ["BucketOwnerEnforced", "Bucket owner enforced – ACLs are off", "The bucket's owner owns everything in it. Only policies give rights."],
  ["BucketOwnerPreferred", "Bucket owner preferred – ACLs apply", "The bucket's owner owns what comes with the ACL bucket-owner-full-control, its writer everything else."],
  ["ObjectWriter", "Object writer – ACLs apply", "The writer of an object owns it, and says by its ACL who may read it."],
];

function Form({ value, onChange }) {
  const chosen = value.rule?.ownership ?? "";
  return html`<${Select} label="Ownership of objects" value=${chosen} options=${[...(chosen ? [] : [["", "Choose one"]]), ...CHOICES]}
    hint=${CHOICES.find(([name]) => name === chosen)?.[2]} onChange=${(ownership) => onChange({ rule: { ownership } })} />`;
}

export default {
  name: "ownership",
  title: "Object ownership",
  about: "Leave ACLs off unless an old program needs them: rights by policies alone are easier to keep in view.",
  query: { ownershipControls: "" },
  absent: ["OwnershipControlsNotFoundError"],
  root: "OwnershipControls",
  ...documentOf("OwnershipControls", { rule: child("Rule", { ownership: text("ObjectOwnership") }) }),
  empty: () => ({ rule: null }),
  nothing: "not controlled: ACLs apply",
  summary: (value) => CHOICES.find(([name]) => name === value.rule?.ownership)?.[1] ?? value.rule?.ownership,
  problems: (value) => (value.rule?.ownership ? {} : { ownership: "Choose one." }),
  loss: "Without controls ACLs apply, as in buckets from before 2023.",
  Form,
};

// Tags of a bucket: names and values for people and their tools.
import { html } from "../../../../ui.js";
import { formatPlural } from "../../../../format.js";
import { RuleList, TextInput } from "../inputs.js";
import { child, documentOf, list, text } from "../shape.js";

const MOST = 50;

function Form({ value, problems, onChange }) {
  return html`<${RuleList} noun="Tag" path="tags" rules=${value.set.tags} problems=${problems} most=${MOST} onChange=${(tags) => onChange({ set: { tags } })}
    create=${() => ({ key: "", value: "" })}
    render=${(tag, change, problem) => html`<div class="columns">
      <${TextInput} label="Key" value=${tag.key} problem=${problem("key")} onInput=${(key) => change({ key })} />
      <${TextInput} label="Value" value=${tag.value} problem=${problem("value")} onInput=${(text_) => change({ value: text_ })} /></div>`} />`;
}

const ALLOWED = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

function problemsOf({ set }) {
  const found = { tags: set.tags.length ? "" : "Add a tag, or remove the setting." };
  set.tags.forEach((tag, index) => {
    const twice = set.tags.some((other, at) => at < index && other.key === tag.key);
    const odd = (value) => (ALLOWED.test(value) ? "" : "Letters, digits, spaces and _ . : / = + - @ only.");
    found[`tags.${index}.key`] = !tag.key ? "A key is needed." : [...tag.key].length > 128 ? "At most 128 characters." : twice ? "This key is there already." : tag.key.toLowerCase().startsWith("aws:") ? "Keys with aws: are reserved." : odd(tag.key);
    found[`tags.${index}.value`] = [...tag.value].length > 256 ? "At most 256 characters." : odd(tag.value);
  });
  return found;
}

export default {
  name: "tags",
  title: "Tags",
  about: "Keys and values that you and your tools give the bucket, such as a cost centre. They change nothing about it.",
  query: { tagging: "" },
  absent: ["NoSuchTagSet"],
  root: "Tagging",
  ...documentOf("Tagging", { set: child("TagSet", { tags: list("Tag", { key: text("Key"), value: text("Value") }) }) }),
  empty: () => ({ set: { tags: [] } }),
  summary: ({ set }) => `${formatPlural(set.tags.length, "tag")}: ${set.tags.slice(0, 3).map((tag) => `${tag.key}=${tag.value}`).join(", ")}`,
  problems: problemsOf,
  loss: "All tags of the bucket go. Those of objects stay.",
  Form,
};

// Lifecycle rules: what is removed or moved by itself after a time.
import { html } from "../../../../ui.js";
import { formatPlural } from "../../../../format.js";
import { Select } from "../inputs.js";
import { LifecyclePreviewButton } from "./lifecycle-preview.js";
import { LifecycleRules } from "./lifecycle-form.js";
import { problemsOf } from "./lifecycle-problems.js";
import { child, documentOf, flag, list, number, text } from "../shape.js";

const MINIMUM = "x-amz-transition-default-minimum-object-size";
const MINIMA = [["all_storage_classes_128K", "Only objects of 128 KiB and more"], ["varies_by_storage_class", "Also smaller ones, to archives"]];
const TAG = { key: text("Key"), value: text("Value") };
const PARTS = { prefix: text("Prefix"), tags: list("Tag", TAG), larger: number("ObjectSizeGreaterThan"), smaller: number("ObjectSizeLessThan") };
const NO_PARTS = { prefix: null, tags: [], larger: "", smaller: "" };

/** The filter of a rule: one part stands alone, several stand in And. */
const filter = {
  read: (parent) => {
    const found = child("Filter", { ...PARTS, and: child("And", PARTS) }).read(parent);
    return found && (found.and ?? { prefix: found.prefix, tags: found.tags, larger: found.larger, smaller: found.smaller });
  },
  write: (value) => {
    if (!value) return [];
    const pairs = Object.entries(PARTS).flatMap(([name, field]) => field.write(value[name])).filter(([, content]) => content !== null);
    return [["Filter", pairs.length > 1 ? [["And", pairs]] : pairs]];
  },
};

const RULE = {
  id: text("ID"),
  filter,
  status: text("Status"),
  expiration: child("Expiration", { days: number("Days"), date: text("Date"), markers: flag("ExpiredObjectDeleteMarker") }),
  noncurrent: child("NoncurrentVersionExpiration", { days: number("NoncurrentDays"), newer: number("NewerNoncurrentVersions") }),
  transitions: list("Transition", { days: number("Days"), date: text("Date"), storageClass: text("StorageClass") }),
  olderTransitions: list("NoncurrentVersionTransition", { days: number("NoncurrentDays"), newer: number("NewerNoncurrentVersions"), storageClass: text("StorageClass") }),
  abort: child("AbortIncompleteMultipartUpload", { days: number("DaysAfterInitiation") }),
};

function Form({ value, note, bucket, problems, onChange, onNote }) {
  const moves = value.rules.some((rule) => rule.transitions.length || rule.olderTransitions.length);
  return html`
    <div class="stack">
      <${LifecycleRules} rules=${value.rules} bucket=${bucket} problems=${problems} noParts=${NO_PARTS} onChange=${(rules) => onChange({ rules })} />
      ${moves && html`<${Select} label="Transitions move" value=${note ?? MINIMA[0][0]} options=${MINIMA} onChange=${onNote} />`}
    </div>`;
}

export default {
  name: "lifecycle",
  title: "Lifecycle",
  about: "Rules remove or move objects by their age, once a day after midnight UTC. What a rule removes without versions is gone.",
  query: { lifecycle: "" },
  absent: ["NoSuchLifecycleConfiguration"],
  root: "LifecycleConfiguration",
  ...documentOf("LifecycleConfiguration", { rules: list("Rule", RULE) }),
  readHeaders: (headers) => headers.get(MINIMUM),
  writeHeaders: (note) => (note ? { [MINIMUM]: note } : {}),
  empty: () => ({ rules: [] }),
  nothing: "nothing is removed by itself",
  summary: ({ rules }) => {
    const off = rules.filter((rule) => rule.status !== "Enabled").length;
    return `${formatPlural(rules.length, "rule")}${off ? `, ${off} of them off` : ""}`;
  },
  problems: ({ rules }) => problemsOf(rules),
  question: ({ rules }, before) => {
    const removes = (all) => all.filter((rule) => rule.status === "Enabled" && (rule.expiration || rule.noncurrent)).map((rule) => JSON.stringify([rule.filter, rule.expiration, rule.noncurrent]));
    const known = new Set(removes(before.rules));
    return removes(rules).some((rule) => !known.has(rule))
      ? { title: "Save rules that remove objects?", message: "From the next run on they remove what is old enough, also what is old already.", action: "Save" } : null;
  },
  loss: "Nothing is removed or moved by itself any more.",
  Form,
  After: LifecyclePreviewButton,
};

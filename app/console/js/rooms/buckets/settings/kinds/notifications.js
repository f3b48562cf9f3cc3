// Event notifications: which changes are told to which target.
import { html } from "../../../../ui.js";
import { callApi } from "../../../../api.js";
import { ErrorNote } from "../../../../components/error-note.js";
import { formatPlural } from "../../../../format.js";
import { useResource } from "../../../../resource.js";
import { childOf, childrenOf, S3_NAMESPACE, textOf, toXml } from "../../../../xml.js";
import { RuleList, Select, TextInput, Ticks } from "../inputs.js";
import { TargetStates } from "./notification-targets.js";

const KINDS = ["Topic", "Queue", "CloudFunction"];
const EVENTS = [
  ["s3:ObjectCreated:*", "Created"], ["s3:ObjectRemoved:*", "Removed"], ["s3:ObjectRemoved:Delete", "Removed for good"], ["s3:ObjectRemoved:DeleteMarkerCreated", "Delete marker made"],
  ["s3:ObjectCreated:Put", "Created by PUT"], ["s3:ObjectCreated:Post", "Created by a form"], ["s3:ObjectCreated:Copy", "Created by a copy"], ["s3:ObjectCreated:CompleteMultipartUpload", "Created in parts"],
  ["s3:ObjectTagging:*", "Tags changed"], ["s3:ObjectTagging:Put", "Tags set"], ["s3:ObjectTagging:Delete", "Tags removed"], ["s3:ObjectAcl:Put", "ACL changed"],
  ["s3:LifecycleExpiration:*", "Expired by a rule"], ["s3:LifecycleExpiration:Delete", "Expired for good"], ["s3:LifecycleExpiration:DeleteMarkerCreated", "Expired to a marker"],
];
const OF_CLASSES = [["s3:LifecycleTransition", "Moved by a rule"]];
const OF_ARCHIVES = [["s3:ObjectRestore:*", "Restored from an archive"], ["s3:ObjectRestore:Post", "Restore asked for"], ["s3:ObjectRestore:Completed", "Restore done"], ["s3:ObjectRestore:Delete", "Restored copy gone"]];

function read(root) {
  const rules = [...root.children].filter((one) => KINDS.includes(one.localName.replace("Configuration", ""))).map((element) => {
    const kind = element.localName.replace("Configuration", "");
    const key = childOf(element, "Filter") && childOf(childOf(element, "Filter"), "S3Key");
    const filters = key ? childrenOf(key, "FilterRule").map((rule) => [textOf(rule, "Name").toLowerCase(), textOf(rule, "Value") ?? ""]) : [];
    const { prefix = "", suffix = "" } = Object.fromEntries(filters);
    return { kind, id: textOf(element, "Id"), arn: textOf(element, kind) ?? "", events: childrenOf(element, "Event").map((event) => event.textContent), prefix, suffix };
  });
  return { rules };
}

function write({ rules }) {
  return toXml("NotificationConfiguration", rules.map(({ kind, id, arn, events, prefix, suffix }) => {
    const filters = [["Prefix", prefix], ["Suffix", suffix]].filter(([, value]) => value).map(([name, value]) => ["FilterRule", [["Name", name], ["Value", value]]]);
    return [`${kind}Configuration`, [["Id", id], [kind, arn], ...events.map((event) => ["Event", event]), ["Filter", filters.length ? [["S3Key", filters]] : null]]];
  }), S3_NAMESPACE);
}

function Form({ value, bucket, problems, onChange }) {
  const { data: targets, error } = useResource((signal) => callApi("GET", `buckets/${encodeURIComponent(bucket.name)}/notification-targets`, { signal }), [bucket.name]);
  if (error) return html`<${ErrorNote} error=${error} />`;
  if (!targets) return html`<p class="quiet" role="status">Loading…</p>`;
  if (!targets.length && !value.rules.length) {
    return html`<p class="note">The gateway's settings name no targets. The operator adds them as <code>notify_targets</code>: webhooks, NATS, Kafka or AMQP.</p>`;
  }
  const events = [...EVENTS, ...(bucket.storage_classes.length ? OF_CLASSES : []), ...(bucket.archives ? OF_ARCHIVES : [])];
  return html`<${RuleList} noun="Rule" path="rules" rules=${value.rules} problems=${problems} onChange=${(rules) => onChange({ rules })}
    create=${() => ({ kind: "Queue", id: null, arn: targets[0]?.arn ?? "", events: ["s3:ObjectCreated:*"], prefix: "", suffix: "" })}
    render=${(rule, change, problem) => html`
      <${Select} label="Target" value=${rule.arn} problem=${problem("arn")} options=${arnsOf(rule, targets)} onChange=${(arn) => change({ arn, kind: rule.arn === arn ? rule.kind : "Queue" })} />
      <${Ticks} legend="Events" options=${eventsOf(rule, events)} values=${rule.events} problem=${problem("events")} onChange=${(chosen) => change({ events: chosen })} />
      <div class="columns">
        <${TextInput} label="Keys that begin with" value=${rule.prefix} problem=${problem("prefix")} onInput=${(prefix) => change({ prefix })} />
        <${TextInput} label="Keys that end with" value=${rule.suffix} problem=${problem("suffix")} onInput=${(suffix) => change({ suffix })} />
      </div>`} />`;
}

function arnsOf(rule, targets) {
  const known = targets.map((target) => [target.arn, `${target.name}${target.kind ? ` (${target.kind})` : ""}`]);
  return known.some(([arn]) => arn === rule.arn) ? known : [...known, [rule.arn, rule.arn]];
}

function eventsOf(rule, events) {
  const more = rule.events.filter((name) => !events.some(([one]) => one === name)).map((name) => [name, name]);
  return [...events, ...more].map(([name, label]) => [name, label, name]);
}

function problemsOf({ rules }) {
  const long = (value) => (new TextEncoder().encode(value).length > 1024 ? "At most 1024 bytes." : "");
  return Object.fromEntries(rules.flatMap((rule, index) => [
    [`rules.${index}.arn`, rule.arn ? "" : "Choose a target."],
    [`rules.${index}.events`, rule.events.length === 0 ? "Choose at least one." : overlaps(rule, rules.slice(0, index)) ? "An earlier rule tells of the same events for such keys: S3 does not allow both." : ""],
    [`rules.${index}.prefix`, long(rule.prefix)],
    [`rules.${index}.suffix`, long(rule.suffix)],
  ]));
}

function overlaps(rule, others) {
  const begins = (one, other) => one.startsWith(other) || other.startsWith(one);
  const ends = (one, other) => one.endsWith(other) || other.endsWith(one);
  const same = (one, other) => one === other || ((one.endsWith(":*") || other.endsWith(":*")) && one.split(":")[1] === other.split(":")[1]);
  const clash = (other) => begins(rule.prefix, other.prefix) && ends(rule.suffix, other.suffix) && rule.events.some((event) => other.events.some((one) => same(event, one)));
  return others.some(clash);
}

export default {
  name: "notifications",
  title: "Notifications",
  about: "Each change of an object becomes a message for the targets of the rules that it matches. Messages wait until the target takes them, those of a key in order.",
  query: { notification: "" },
  root: "NotificationConfiguration",
  read,
  write,
  summary: ({ rules }) => (rules.length ? formatPlural(rules.length, "rule") : "none"),
  problems: problemsOf,
  Form,
  After: TargetStates,
};

// The access log of a bucket: where its lines are delivered.
import { html } from "../../../../ui.js";
import { Check } from "../../../../components/field.js";
import { Select, TextInput } from "../inputs.js";
import { nameProblem } from "../../create/names.js";
import { child, documentOf, text } from "../shape.js";

const FORMAT = { simple: child("SimplePrefix", {}), partitioned: child("PartitionedPrefix", { source: text("PartitionDateSource") }) };
const FIELDS = { on: child("LoggingEnabled", { bucket: text("TargetBucket"), prefix: text("TargetPrefix"), format: child("TargetObjectKeyFormat", FORMAT) }) };
const FORMATS = [["", "PREFIX and the time (default)"], ["simple", "PREFIX and the time, named"], ["EventTime", "Folders by the day of the requests"], ["DeliveryTime", "Folders by the day of delivery"]];

function formatOf(on) {
  if (!on?.format) return "";
  return on.format.simple ? "simple" : on.format.partitioned?.source ?? "EventTime";
}

function Form({ value, bucket, problems, onChange }) {
  const { on } = value;
  const set = (changes) => onChange({ on: { ...on, ...changes } });
  const choose = (name) => set({ format: { "": null, simple: { simple: {}, partitioned: null } }[name] ?? (name ? { simple: null, partitioned: { source: name } } : null) });
  return html`
    <div class="stack">
      <${Check} label="Deliver an access log" hint="Each request becomes a line; lines become objects every few minutes." checked=${Boolean(on)} onChange=${(yes) => onChange({ on: yes ? { bucket: "", prefix: `${bucket.name}/`, format: null } : null })} />
      ${on && html`
        <div class="columns">
          <${TextInput} label="To the bucket" hint="Another bucket, whose policy lets logging.s3.amazonaws.com put objects." value=${on.bucket} problem=${problems.bucket} onInput=${(name) => set({ bucket: name.trim() })} />
          <${TextInput} label="Prefix" value=${on.prefix} problem=${problems.prefix} onInput=${(prefix) => set({ prefix })} />
        </div>
        <${Select} label="Keys of the log's objects" value=${formatOf(on)} options=${FORMATS} onChange=${choose} />`}
    </div>`;
}

export default {
  name: "logging",
  title: "Access log",
  about: "Who asked for what, when, and with which result: one line for each request, in AWS's format.",
  query: { logging: "" },
  root: "BucketLoggingStatus",
  ...documentOf("BucketLoggingStatus", FIELDS),
  summary: ({ on }) => (on ? `to ${on.bucket}/${on.prefix}` : "off"),
  problems: ({ on }) => ({
    bucket: on ? (on.bucket ? nameProblem(on.bucket) : "Name a bucket.") : "",
    prefix: on && on.prefix.length > 512 ? "At most 512 characters." : "",
  }),
  Form,
};

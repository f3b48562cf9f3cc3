// Default encryption: how new objects are encrypted whose writer does not say.
import { html } from "../../../../ui.js";
import { Check } from "../../../../components/field.js";
import { Select, TextInput } from "../inputs.js";
import { child, documentOf, flag, optional, text } from "../shape.js";

const METHODS = [["AES256", "With keys of the gateway (SSE-S3)"], ["aws:kms", "With a named key of the gateway's key ring (SSE-KMS)"]];
const DEFAULT = { algorithm: text("SSEAlgorithm"), key: optional("KMSMasterKeyID") };
const FIELDS = { rule: child("Rule", { byDefault: child("ApplyServerSideEncryptionByDefault", DEFAULT), blocked: child("BlockedEncryptionTypes", { type: text("EncryptionType") }), bucketKey: flag("BucketKeyEnabled") }) };

function Form({ value, bucket, onChange }) {
  const { rule } = value;
  const set = (changes) => onChange({ rule: { ...rule, ...changes } });
  const choose = (algorithm) => set({ byDefault: algorithm ? { algorithm, key: null } : null });
  return html`
    <div class="stack">
      ${!bucket.encryption_available && html`<p class="note warn">The gateway has no key ring: start it with a master key first (setting <code>master_key_file</code>).</p>`}
      <${Select} label="New objects are encrypted" value=${rule.byDefault?.algorithm ?? ""} options=${[["", "Not by default"], ...METHODS]} onChange=${choose} />
      ${rule.byDefault?.algorithm === "aws:kms" && html`<${TextInput} label="Key (id or ARN)" hint="Empty: the ring's own key for S3." value=${rule.byDefault.key}
        onInput=${(key) => set({ byDefault: { ...rule.byDefault, key: key.trim() || null } })} />
        <${Check} label="One data key for the bucket" hint="Fewer uses of the key (S3 Bucket Keys)." checked=${Boolean(rule.bucketKey)} onChange=${(bucketKey) => set({ bucketKey })} />`}
      <${Check} label="Refuse objects under keys of their writers (SSE-C)" checked=${rule.blocked?.type === "SSE-C"} onChange=${(on) => set({ blocked: { type: on ? "SSE-C" : "NONE" } })} />
    </div>`;
}

export default {
  name: "encryption",
  title: "Encryption",
  about: "What lies on the disk is encrypted then. Objects that are there stay as they are until they are written again.",
  query: { encryption: "" },
  absent: ["ServerSideEncryptionConfigurationNotFoundError"],
  root: "ServerSideEncryptionConfiguration",
  ...documentOf("ServerSideEncryptionConfiguration", FIELDS),
  empty: () => ({ rule: { byDefault: null, blocked: null, bucketKey: false } }),
  nothing: "not by default",
  summary: ({ rule }) => rule.byDefault?.algorithm ?? (rule.blocked?.type === "SSE-C" ? "not by default; SSE-C is refused" : "not by default"),
  problems: ({ rule }, bucket) => ({
    rule: rule.byDefault || rule.blocked ? "" : "Choose an encryption, or remove the setting.",
    keyring: rule.byDefault && !bucket.encryption_available ? "no key ring" : "",
  }),
  loss: "New objects are stored without encryption, unless their writer asks for it.",
  Form,
};

// Facts of an object, and its headers and metadata, which one can change.
import { html, useState } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { toast } from "../../../components/toast.js";
import { Bytes, Copy, Time } from "../../../components/values.js";
import { useAction } from "../../../resource.js";
import { copyObject } from "../actions.js";
import { EDITABLE, headersOf } from "./head.js";
import { Pairs } from "./pairs.js";

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\x20-\x7e]*$/;
const MAX_METADATA_BYTES = 2048;

/** Shows them; a change is a copy of the object onto itself, which writes no bytes. */
export function Properties({ bucket, objectKey, head, versioning, changed }) {
  return html`
    <dl class="facts">
      <dt>Size</dt><dd><${Bytes} value=${head.size} /></dd>
      <dt>Modified</dt><dd><${Time} value=${head.modified} /></dd>
      <dt>ETag</dt><dd><code>${head.etag}</code></dd>
      ${head.checksum && html`<dt>Checksum</dt><dd><code>${head.checksum}</code></dd>`}
      ${head.versionId && html`<dt>Version</dt><dd><code>${head.versionId}</code></dd>`}
      <dt>Storage class</dt><dd>${head.storageClass}</dd>
      <dt>Encryption</dt><dd>${head.encryption ?? "none"}${head.kmsKey && html` <code>${head.kmsKey}</code>`}</dd>
      ${head.restore && html`<dt>Restore</dt><dd>${head.restore}</dd>`}
      <dt>S3 path</dt><dd class="row"><code>s3://${bucket}/${objectKey}</code><${Copy} text=${`s3://${bucket}/${objectKey}`} label="Copy the S3 path" /></dd>
    </dl>
    <${Editor} key=${head.etag + head.modified} bucket=${bucket} objectKey=${objectKey} head=${head} versioning=${versioning} changed=${changed} />`;
}

function Editor({ bucket, objectKey, head, versioning, changed }) {
  const [headers, setHeaders] = useState(head.headers);
  const [metadata, setMetadata] = useState(head.metadata);
  const problem = problemOf(headers, metadata);
  const isChanged = JSON.stringify([headers, metadata]) !== JSON.stringify([head.headers, head.metadata]);
  const [save, { busy, error }] = useAction(async () => {
    const self = { bucket, key: objectKey };
    await copyObject(self, self, { headers: headersOf(head, headers, metadata), replace: true });
    toast("Headers and metadata saved");
    changed();
  });
  return html`
    <form class="stack" onSubmit=${(event) => event.preventDefault() || save()}>
      <h3>Headers</h3>
      <div class="grid">${EDITABLE.map(([name, label]) => html`
        <${Field} key=${name} label=${label}>${(props) => html`<input ...${props} spellcheck=${false} value=${headers[name]}
          onInput=${(event) => setHeaders({ ...headers, [name]: event.target.value })} />`}<//>`)}</div>
      <h3>Metadata</h3>
      <${Pairs} pairs=${metadata} onChange=${setMetadata} noun="metadata" />
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <${ErrorNote} error=${error} />
      <div class="row"><${Button} kind="primary" type="submit" busy=${busy} disabled=${!isChanged || problem} why=${problem || "Nothing is changed"}>Save<//>
        <span class="quiet small">${versioning === "Enabled" ? "Saving makes a new version." : "Saving writes the object again, with an ACL that is private."}</span></div>
    </form>`;
}

function problemOf(headers, metadata) {
  if (!Object.values(headers).every((value) => VALUE.test(value))) return "Headers are of ASCII characters only.";
  const used = metadata.filter(([name, value]) => name || value);
  if (used.some(([name]) => !NAME.test(name.toLowerCase()))) return "Names of metadata are letters, digits and -_. without blanks.";
  if (used.some(([, value]) => !VALUE.test(value))) return "Values of metadata are of ASCII characters only.";
  if (new Set(used.map(([name]) => name.toLowerCase())).size < used.length) return "A name stands twice.";
  const bytes = used.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return bytes > MAX_METADATA_BYTES ? "Metadata has at most 2 KiB." : "";
}

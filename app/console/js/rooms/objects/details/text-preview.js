// Text and JSON, its beginning if it is long.
import { html, useState } from "../../../ui.js";
import { Check } from "../../../components/field.js";
import { ErrorNote } from "../../../components/error-note.js";
import { formatBytes } from "../../../format.js";
import { useResource } from "../../../resource.js";
import { readText } from "./head-of-text.js";

const MAX_BYTES = 256 * 1024;

/** Shows text as text: markup in it is not interpreted. */
export function TextPreview({ bucket, objectKey, head }) {
  const { data, error, reload } = useResource((signal) => readText(bucket, objectKey, head.size, MAX_BYTES, signal), [bucket, objectKey]);
  const [pretty, setPretty] = useState(true);
  if (!data) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  const formatted = data.isWhole && /json|^$/.test(head.type) ? format(data.text) : null;
  return html`
    ${formatted !== null && html`<${Check} label="Indent" checked=${pretty} onChange=${setPretty} />`}
    <pre class="text-preview" tabindex="0" aria-label="Content">${pretty && formatted !== null ? formatted : data.text}</pre>
    ${!data.isWhole && html`<p class="quiet small">The first ${formatBytes(MAX_BYTES)} of ${formatBytes(head.size)}.</p>`}`;
}

function format(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

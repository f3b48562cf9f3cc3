// Two versions side by side: what differs in their facts, and in their text where both are short texts.
import { html, useState } from "../../ui.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Button } from "../../components/button.js";
import { Time } from "../../components/values.js";
import { formatBytes, formatCount } from "../../format.js";
import { useResource } from "../../resource.js";
import { readBytes } from "./actions.js";
import { DiffView } from "./diff-view.js";
import { loadFacts } from "./version-facts.js";

const MAX_TEXT_BYTES = 256 * 1024;
const LAYOUTS = [["side", "Side by side"], ["inline", "Inline"]];

/** Compares two versions, the older one first. */
export function CompareDialog({ bucket, versions, onClose }) {
  const [older, newer] = versions;
  const [layout, setLayout] = useState(matchMedia("(max-width: 52rem)").matches ? "inline" : "side");
  const { data, error, reload } = useResource(async (signal) => {
    const facts = await Promise.all([older, newer].map((one) => loadFacts(bucket, one, signal)));
    const texts = await Promise.all([older, newer].map((one, place) => readText(bucket, one, facts[place], signal)));
    return { facts, texts };
  }, [older.id, newer.id]);
  const differences = data && compareFacts([older, newer], data.facts);
  return html`
    <${Dialog} title="Compare two versions" onClose=${onClose} wide>
      <p class="row"><span><${Time} value=${older.modified} /></span><span aria-hidden="true">→</span><span class="screen-reader">with</span><span><${Time} value=${newer.modified} /></span></p>
      <${ErrorNote} error=${error} retry=${reload} />
      ${!data && !error && html`<p class="quiet" role="status">Reading both versions…</p>`}
      ${data && html`
        <${FactsTable} differences=${differences} />
        <div class="row"><h3 class="grow">Content</h3>${LAYOUTS.map(([name, label]) => html`
          <${Button} key=${name} aria-pressed=${String(layout === name)} onClick=${() => setLayout(name)}>${label}<//>`)}</div>
        <${Content} versions=${[older, newer]} texts=${data.texts} layout=${layout} />`}
    <//>`;
}

function FactsTable({ differences }) {
  if (!differences.length) return html`<p class="quiet">Size, headers, metadata, tags and protection are the same.</p>`;
  return html`
    <div class="scroll"><table>
      <caption class="screen-reader">What differs</caption>
      <thead><tr><th scope="col">Differs</th><th scope="col">Older</th><th scope="col">Newer</th></tr></thead>
      <tbody>${differences.map(([name, before, after]) => html`
        <tr key=${name}><th scope="row">${name}</th><td class="breaks">${before ?? "–"}</td><td class="breaks">${after ?? "–"}</td></tr>`)}</tbody>
    </table></div>`;
}

function Content({ versions, texts, layout }) {
  if (versions[0].etag === versions[1].etag && versions[0].size === versions[1].size) {
    return html`<p class="note good">The content is the same: both have the ETag <code>${versions[0].etag}</code>.</p>`;
  }
  const reason = texts.find((one) => one.reason)?.reason;
  if (reason) return html`<p class="quiet">${reason}</p>`;
  return html`<${DiffView} before=${texts[0].text} after=${texts[1].text} layout=${layout} />`;
}

async function readText(bucket, version, facts, signal) {
  if (version.size > MAX_TEXT_BYTES) return { reason: `Texts are compared up to ${formatBytes(MAX_TEXT_BYTES)} each.` };
  if (facts.settings["content-encoding"] && facts.settings["content-encoding"] !== "aws-chunked") return { reason: "Compressed content is not compared." };
  try {
    const bytes = await readBytes(bucket, version, MAX_TEXT_BYTES, signal);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? { reason: "The content is no text." } : { text };
  } catch (error) {
    if (error instanceof TypeError) return { reason: "The content is no text in UTF-8." };
    if (error.status >= 400 && error.status < 500) return { reason: `The content cannot be read: ${error.message}` };
    throw error;
  }
}

function compareFacts(versions, facts) {
  const [before, after] = versions.map((version, place) => flatten(version, facts[place]));
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.filter((name) => before[name] !== after[name]).map((name) => [name, before[name], after[name]]);
}

function flatten(version, facts) {
  const { mode, until, hold } = facts.lock;
  return {
    Size: `${formatCount(version.size)} bytes`, ETag: version.etag, "Storage class": version.storageClass,
    Retention: mode ? `${mode} until ${until}` : undefined, "Legal hold": hold ? "ON" : undefined,
    ...facts.settings,
    ...prefixed("x-amz-meta-", facts.metadata), ...prefixed("Tag ", facts.tags ?? {}),
  };
}

function prefixed(prefix, values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]));
}

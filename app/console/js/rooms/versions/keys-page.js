// The keys of a bucket with their versions: also those that a delete marker hides, which no other list shows.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Icon } from "../../components/icon.js";
import { Empty } from "../../components/page.js";
import { Badge, Bytes, Time } from "../../components/values.js";
import { VirtualList } from "../../components/virtual-list.js";
import { formatPlural } from "../../format.js";
import { navigate } from "../../router.js";
import { BucketFrame, isGone } from "../buckets/bucket-frame.js";
import { loadPage } from "./list-versions.js";
import { folderPath, keysPath, parentOf, timelinePath } from "./paths.js";
import { usePages } from "./use-pages.js";

const LINE_PX = 48;
const SWAMPED = 1000;

/** Lists the folders and keys below a prefix, each key once, with its newest version. */
export function KeysPage({ bucket, prefix }) {
  const pages = usePages(async (marker, signal) => {
    const { versions, folders, next } = await loadPage({ bucket, prefix, delimiter: "/", marker, signal });
    const items = [...folders.map((folder) => ({ folder, key: folder })), ...groupByKey(versions)];
    // a key with very many versions must not swamp the list: go on after it
    const swamped = next?.version && versions.length >= SWAMPED && items.length === 1;
    return { items: items.sort(byKey), next: swamped ? { key: next.key } : next };
  }, [bucket, prefix]);
  const entries = merge(pages.items);
  const [typed, setTyped] = useState(prefix);
  const go = (event) => {
    event.preventDefault();
    navigate(keysPath(bucket, typed));
  };
  return html`
    <${BucketFrame} name=${bucket} current="versions" gone=${isGone(pages.error)}>
      <div class="stack keys">
        <p class="quiet">Keys with all that is kept of them. Those that were deleted are listed too, and can be brought back.</p>
        <form class="prefix-form" onSubmit=${go}>
          <${Field} label="Prefix">
            ${(control) => html`<input ...${control} value=${typed} spellcheck=${false} autocapitalize="none" onInput=${(event) => setTyped(event.target.value)} />`}<//>
          <${Button} type="submit">Show<//>
          ${prefix && html`<${Button} icon="up" href=${keysPath(bucket, parentOf(prefix))}>Up<//>`}
        </form>
        <${ErrorNote} error=${pages.error} retry=${pages.reload} />
        ${!pages.loading && !pages.error && entries.length === 0 && html`<${Empty} title="Nothing here" action="Objects" href=${folderPath(bucket, "")}>
          No key begins with this prefix. A bucket keeps versions once versioning is on, in its settings.<//>`}
        ${entries.length > 0 && html`
          <p class="quiet small" aria-live="polite">${formatPlural(entries.length, "entry", "entries")}${pages.done ? "" : " loaded, more as you scroll"}.</p>
          <${VirtualList} label="Keys and folders" count=${entries.length} lineHeight=${LINE_PX} columns=${1} onNearEnd=${pages.more}
            renderLine=${(index) => html`<${KeyLine} bucket=${bucket} prefix=${prefix} entry=${entries[index]} />`} />`}
      </div>
    <//>`;
}

function KeyLine({ bucket, prefix, entry }) {
  const name = entry.key.slice(prefix.length) || entry.key;
  const href = entry.folder ? keysPath(bucket, entry.folder) : timelinePath(bucket, entry.key);
  return html`
    <div class="key-line" role="gridcell">
      <${Icon} name=${entry.folder ? "folder" : "file"} />
      <a class="grow cut" href=${href}>${name}</a>
      ${!entry.folder && html`
        ${entry.newest.marker && html`<${Badge} kind="warn">Deleted<//>`}
        <${Badge}>${formatPlural(entry.count, "version")}<//>
        <span class="wide-only number size">${entry.newest.marker ? "–" : html`<${Bytes} value=${entry.newest.size} />`}</span>
        <span class="wide-only quiet when"><${Time} value=${entry.newest.modified} /></span>`}
    </div>`;
}

function groupByKey(versions) {
  const found = new Map();
  for (const version of versions) {
    const entry = found.get(version.key);
    if (entry) entry.count += 1;
    else found.set(version.key, { key: version.key, newest: version, count: 1 });
  }
  return [...found.values()];
}

function merge(items) {
  const found = new Map();
  for (const item of items) {
    const before = found.get(item.key);
    if (before && !item.folder) found.set(item.key, { ...before, count: before.count + item.count });
    else found.set(item.key, item);
  }
  return [...found.values()];
}

function byKey(one, other) {
  return one.key < other.key ? -1 : one.key > other.key ? 1 : 0;
}

// The list of buckets: contents, quota, badges; filtered and sorted in the browser, more pages on demand.
import { html, useEffect, useRef, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Empty, Page } from "../../../components/page.js";
import { useCommands } from "../../../components/palette.js";
import { formatCount } from "../../../format.js";
import { useResource } from "../../../resource.js";
import { navigate, pathTo } from "../../../router.js";
import { CreateDialog } from "../create/create-dialog.js";
import { BucketTable } from "./bucket-table.js";

const PAGE = 500;
const COUNTING_MS = 1500;

/** Lists the buckets of the session's account. `?filter=` is in the address, `?create` opens the dialog. */
export function ListPage({ query }) {
  const [pages, setPages] = useState(1);
  const { data, error, loading, reload } = useResource((signal) => loadPages(pages, signal), [pages]);
  const filter = query.get("filter") ?? "";
  const creating = query.has("create");
  const open = (changes) => navigate(pathTo(["buckets"], { filter, ...changes }), { replace: true });
  useEffect(() => {
    if (!data?.counting) return undefined;
    const timer = setTimeout(reload, COUNTING_MS);
    return () => clearTimeout(timer);
  }, [data]);
  useCommands("buckets", () => [
    { label: "Create a bucket", run: () => open({ create: "1" }) },
    ...(data?.buckets ?? []).map((bucket) => ({ label: bucket.name, hint: "bucket", href: pathTo(["buckets", bucket.name, "objects"]) })),
  ], [data]);
  const actions = html`
    <${Button} kind="plain" icon="refresh" label="Load again" onClick=${reload} busy=${loading && Boolean(data)} />
    <${Button} kind="primary" icon="plus" onClick=${() => open({ create: "1" })}>Create a bucket<//>`;
  return html`
    <${Page} title="Buckets" actions=${actions}>
      <div class="stack">
        <${ErrorNote} error=${error} retry=${reload} />
        ${data && html`<${Found} data=${data} filter=${filter} onFilter=${(text) => open({ filter: text })} onCreate=${() => open({ create: "1" })} />`}
        ${!data && !error && html`<p class="quiet" role="status">Loading…</p>`}
        ${data?.next && html`<div><${Button} busy=${loading} onClick=${() => setPages(pages + 1)}>Show more<//></div>`}
      </div>
      ${creating && html`<${CreateDialog} onClose=${() => open({})} />`}
    <//>`;
}

async function loadPages(count, signal) {
  const found = { buckets: [], next: null, counting: false };
  for (let page = 0; page < count && (page === 0 || found.next); page += 1) {
    const query = { limit: PAGE, ...(found.next ? { after: found.next } : {}) };
    const answer = await callApi("GET", "buckets", { query, signal });
    found.buckets.push(...answer.buckets);
    found.next = answer.next;
    found.counting ||= answer.counting;
  }
  return found;
}

function Found({ data, filter, onFilter, onCreate }) {
  if (!data.buckets.length) {
    return html`<${Empty} title="No buckets yet" action="Create a bucket" onAction=${onCreate}>
      A bucket holds objects under their keys. Make one, then drop files into it, or point an S3 client at it.<//>`;
  }
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = data.buckets.filter((bucket) => words.every((word) => `${bucket.name} ${bucket.store ?? ""}`.toLowerCase().includes(word)));
  return html`
    <${Filter} filter=${filter} onFilter=${onFilter} shown=${shown.length} total=${data.buckets.length} more=${Boolean(data.next)} />
    ${shown.length ? html`<${BucketTable} buckets=${shown} />` : html`<p class="quiet">No loaded bucket has “${filter}” in its name or store.</p>`}`;
}

function Filter({ filter, onFilter, shown, total, more }) {
  const input = useRef(null);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  const label = `${formatCount(shown)} of ${formatCount(total)}${more ? " loaded" : ""}`;
  return html`
    <div class="row bucket-filter">
      <input type="search" ref=${input} aria-label="Filter by name or store" placeholder="Filter by name or store ( / )" value=${filter}
        onInput=${(event) => onFilter(event.target.value)} onKeyDown=${(event) => event.key === "Escape" && onFilter("")} />
      <span class="quiet small" role="status">${label}</span>
    </div>`;
}

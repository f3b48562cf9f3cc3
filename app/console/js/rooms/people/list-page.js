// The frame of the room's lists: heading, tabs, a filter that the address keeps, the button that makes one more.
import { html, useEffect, useRef } from "../../ui.js";
import { Button } from "../../components/button.js";
import { DataTable } from "../../components/data-table.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page, Tabs } from "../../components/page.js";
import { navigate, page } from "../../router.js";

/** A list's page. `action`: { label, onClick }; `count` is how many there are, to show a filter only where it helps. */
export function ListPage({ title, tabs, action, query, count, error, retry, children }) {
  const actions = action && html`<${Button} kind="primary" icon="plus" onClick=${action.onClick}>${action.label}<//>`;
  return html`
    <${Page} title=${title} actions=${actions}>
      <${Tabs} label="People" tabs=${tabs} />
      <div class="stack">
        <${ErrorNote} error=${error} retry=${retry} />
        ${(count > 5 || query.get("filter")) && html`<${Filter} value=${query.get("filter") ?? ""} label="Filter ${title.toLowerCase()}" />`}
        ${children}
      </div>
    <//>`;
}

function Filter({ value, label }) {
  const input = useRef(null);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      input.current.focus();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  const onInput = (event) => {
    const query = new URLSearchParams(page.peek().query);
    if (event.target.value) query.set("filter", event.target.value);
    else query.delete("filter");
    navigate(`${location.pathname}${query.size ? `?${query}` : ""}`, { replace: true });
  };
  return html`<input ref=${input} class="people-filter" type="search" aria-label=${label} aria-keyshortcuts="/" placeholder="Filter ( / )"
    value=${value} onInput=${onInput} />`;
}

/** The rows that the address's filter lets through, as a table of components/data-table.js. `texts(row)` are searched. */
export function FilteredTable({ rows, query, texts, ...table }) {
  const shown = filterRows(rows, query, texts);
  if (rows.length && !shown.length) return html`<p class="quiet">Nothing matches the filter.</p>`;
  return html`<${DataTable} rows=${shown} ...${table} />`;
}

/** Returns the rows one of whose texts contains the address's filter, in any case. */
function filterRows(rows, query, texts) {
  const wanted = (query.get("filter") ?? "").toLowerCase();
  return wanted ? rows.filter((row) => texts(row).some((text) => text.toLowerCase().includes(wanted))) : rows;
}

// The list of a folder: virtual, by pointer and by keyboard.
import { classes, html, useEffect, useState } from "../../ui.js";
import { Icon } from "../../components/icon.js";
import { Bytes, Time } from "../../components/values.js";
import { VirtualList } from "../../components/virtual-list.js";
import { downloadUrl, startDownload } from "./actions.js";
import { folderPath, parentOf } from "./paths.js";
import { nameBelow } from "./listing.js";
import { navigate } from "../../router.js";
import { toast } from "../../components/toast.js";

const LINE_PX = 40;
const PAGE_LINES = 12;
const COLUMNS = [["name", "Name"], ["size", "Size"], ["modified", "Modified"]];
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE_LINES, PageUp: -PAGE_LINES, Home: -Infinity, End: Infinity };

/** Shows rows; `show(row)` opens one, `look({ order })` sorts. `list` is a ref to its element. */
export function ObjectList({ bucket, prefix, listing, rows, selection, filter, order, look, show, list }) {
  const [active, setActive] = useState(0);
  useEffect(() => setActive(0), [bucket, prefix, filter, order.by, order.descending]);
  const at = Math.min(active, rows.length - 1);
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey) {
      if (event.key !== "a") return;
      selection.all(rows);
    } else if (event.key in STEPS) {
      const next = Math.max(0, Math.min(rows.length - 1, at + STEPS[event.key]));
      if (event.shiftKey && rows.length) selection.range(rows, at, next);
      setActive(next);
    } else if (event.key === "Enter" && rows[at]) show(rows[at]);
    else if (event.key === " " && rows[at]) selection.toggle(rows[at].key);
    else if (event.key === "Escape") selection.clear();
    else if (event.key === "Backspace" && prefix) navigate(folderPath(bucket, parentOf(prefix)));
    else return;
    event.preventDefault();
  };
  const onLineClick = (index, event) => {
    if (event.target.closest("a, button, input")) return;
    list.current.focus({ preventScroll: true });
    if (event.shiftKey) selection.range(rows, at, index);
    else selection.toggle(rows[index].key);
    setActive(index);
  };
  const parts = { bucket, prefix, selection };
  return html`
    <div class="object-list">
      <div class="head" role="group" aria-label="Sort what is loaded">${COLUMNS.map(([by, label]) => html`
        <button type="button" key=${by} class=${classes(by, by === "modified" && "wide-only")} aria-pressed=${String(order.by === by)}
          onClick=${() => look({ order: { by, descending: order.by === by && !order.descending } })}>
          ${label}${order.by === by ? (order.descending ? " ↓" : " ↑") : ""}</button>`)}</div>
      <${VirtualList} count=${rows.length} lineHeight=${LINE_PX} label=${`Objects in ${prefix || bucket}`} columns=${5} listRef=${list}
        active=${at} scrollTo=${at} isSelected=${(index) => Boolean(rows[index]) && selection.has(rows[index].key)}
        onNearEnd=${filter ? undefined : listing.more} onKeyDown=${onKeyDown} onLineClick=${onLineClick}
        renderLine=${(index) => renderRow(rows[index], parts)} />
    </div>`;
}

function renderRow(row, { bucket, prefix, selection }) {
  if (!row) return null;
  const name = nameBelow(prefix, row.key);
  const href = row.folder ? folderPath(bucket, row.key) : folderPath(bucket, prefix, row.key);
  const download = () => downloadUrl(bucket, row.key).then(startDownload, (error) => toast(error.message, { kind: "bad" }));
  return html`
    <span role="gridcell" class="pick"><input type="checkbox" tabindex="-1" aria-label="Select ${name}" checked=${selection.has(row.key)}
      onChange=${() => selection.toggle(row.key)} /></span>
    <span role="gridcell" class="name cut"><${Icon} name=${row.folder ? "folder" : "file"} />
      <a class="cut" tabindex="-1" href=${href} title=${row.key}>${name}</a></span>
    <span role="gridcell" class="size number">${row.folder ? "" : html`<${Bytes} value=${row.size} />`}</span>
    <span role="gridcell" class="modified wide-only quiet">${row.folder ? "" : html`<${Time} value=${row.modified} />`}</span>
    <span role="gridcell" class="act">${!row.folder && html`<button type="button" class="button plain" tabindex="-1" aria-label="Download ${name}"
      title="Download" onClick=${download}><${Icon} name="download" /></button>`}</span>`;
}

import { html, useMemo, useState } from "../ui.js";

/**
 * A table of at most some hundred rows, sorted by a click on a column's head.
 * `columns`: [{ name, label, render(row), sort(row), number, wideOnly }]; `rowKey(row)`; `caption` for screen readers.
 */
export function DataTable({ columns, rows, rowKey, caption, sortedBy, selected }) {
  const [order, setOrder] = useState({ name: sortedBy, descending: false });
  const sorted = useMemo(() => sortRows(rows, columns, order), [rows, order]);
  const toggle = (name) => setOrder({ name, descending: order.name === name && !order.descending });
  return html`
    <div class="scroll">
      <table>
        <caption class="screen-reader">${caption}</caption>
        <thead><tr>${columns.map((column) => renderHead(column, order, toggle))}</tr></thead>
        <tbody>
          ${sorted.map((row) => html`
            <tr key=${rowKey(row)} aria-selected=${selected ? String(selected(row)) : undefined}>
              ${columns.map((column) => html`<td key=${column.name} class=${cellClass(column)}>${column.render(row)}</td>`)}
            </tr>`)}
        </tbody>
      </table>
    </div>`;
}

function cellClass(column) {
  return [column.number && "number", column.wideOnly && "wide-only"].filter(Boolean).join(" ");
}

function renderHead(column, order, toggle) {
  const current = order.name === column.name;
  const direction = order.descending ? "descending" : "ascending";
  return html`
    <th key=${column.name} scope="col" class=${cellClass(column)} aria-sort=${current && column.sort ? direction : undefined}>
      ${column.sort
        ? html`<button type="button" onClick=${() => toggle(column.name)}>${column.label}${current ? (order.descending ? " ↓" : " ↑") : ""}</button>`
        : column.label || html`<span class="screen-reader">Actions</span>`}
    </th>`;
}

function sortRows(rows, columns, { name, descending }) {
  const sort = columns.find((column) => column.name === name)?.sort;
  if (!sort) return rows;
  const factor = descending ? -1 : 1;
  return [...rows].sort((one, other) => factor * compare(sort(one), sort(other)));
}

function compare(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return -1;
  if (other === null || other === undefined) return 1;
  return typeof one === "string" ? one.localeCompare(other) : one - other;
}

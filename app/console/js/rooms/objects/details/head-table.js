// The first rows of a table.
import { html } from "../../../ui.js";

const MAX_COLUMNS = 100;
const MAX_CELL = 200;

/** `columns`: [{ name, type }]; `rows`: arrays of text, null for none. */
export function HeadTable({ columns, rows, caption }) {
  const shown = columns.slice(0, MAX_COLUMNS);
  return html`
    <div class="scroll head-table" tabindex="0" role="region" aria-label=${caption}>
      <table>
        <caption class="screen-reader">${caption}</caption>
        <thead><tr>${shown.map(({ name, type }, index) => html`<th key=${index} scope="col">${cut(name)}${type && html`<span class="type">${type}</span>`}</th>`)}</tr></thead>
        <tbody>${rows.map((row, at) => html`<tr key=${at}>${shown.map((_, index) => renderCell(row[index], index))}</tr>`)}</tbody>
      </table>
    </div>
    ${columns.length > MAX_COLUMNS && html`<p class="quiet small">The first ${MAX_COLUMNS} of ${columns.length} columns.</p>`}`;
}

function renderCell(value, index) {
  if (value === null || value === undefined) return html`<td key=${index} class="quiet">null</td>`;
  return html`<td key=${index}>${cut(value)}</td>`;
}

function cut(text) {
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text;
}

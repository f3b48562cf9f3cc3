// The filters of the live list.
import { html } from "../../../ui.js";
import { Field } from "../../../components/field.js";

export const NAMES = ["bucket", "prefix", "principal", "operation", "status", "slower_than_ms", "request"];
const TEXTS = [
  { name: "bucket", label: "Bucket" },
  { name: "prefix", label: "Key begins with" },
  { name: "principal", label: "Caller", placeholder: "ARN or access key" },
  { name: "operation", label: "Operation", placeholder: "GetObject" },
  { name: "request", label: "Request id", placeholder: "as answers name it" },
];
const STATUSES = [["", "All"], ["error", "Errors (4xx, 5xx)"], ["2xx", "2xx"], ["3xx", "3xx"], ["4xx", "4xx"], ["5xx", "5xx"]];

/** Shows the filters; `onChange(name, value)`. The first one is the page's: `/` goes there. */
export function RequestFilters({ values, onChange }) {
  return html`
    <search class="filters">
      ${TEXTS.map(({ name, label, placeholder }, index) => html`
        <${Field} key=${name} label=${label}>
          ${(props) => html`<input ...${props} type="search" autocomplete="off" spellcheck=${false} placeholder=${placeholder} data-filter=${index === 0 ? "" : undefined}
            value=${values[name]} onInput=${(event) => onChange(name, event.target.value)} />`}<//>`)}
      <${Field} label="Status">
        ${(props) => html`<select ...${props} value=${values.status} onChange=${(event) => onChange("status", event.target.value)}>
          ${STATUSES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select>`}<//>
      <${Field} label="Slower than (ms)">
        ${(props) => html`<input ...${props} type="number" min="0" step="any" inputmode="decimal" value=${values.slower_than_ms}
          onInput=${(event) => onChange("slower_than_ms", event.target.value)} />`}<//>
    </search>`;
}

// The filters of the audit log.
import { html } from "../../../ui.js";
import { Field } from "../../../components/field.js";

export const NAMES = ["since", "until", "principal", "access_key", "action", "resource", "outcome"];
const TEXTS = [
  { name: "action", label: "Action", placeholder: "PutBucketPolicy" },
  { name: "principal", label: "Who", placeholder: "user/ann" },
  { name: "access_key", label: "Access key", placeholder: "" },
  { name: "resource", label: "Resource", placeholder: "bucket" },
];
const OUTCOMES = [["", "all"], ["Success", "made"], ["refused", "refused"]];

/** Returns the query of the API: a word is looked for anywhere, a pattern with `*` is taken as it is. */
export function toQuery(values) {
  const query = {};
  for (const { name } of TEXTS) {
    const value = values[name].trim();
    if (value) query[name] = /[*?]/.test(value) ? value : `*${value}*`;
  }
  for (const name of ["since", "until"]) {
    const moment = new Date(values[name]);
    if (values[name] && !Number.isNaN(moment.getTime())) query[name] = moment.toISOString();
  }
  if (values.outcome) query.outcome = values.outcome === "refused" ? "!Success" : values.outcome;
  return query;
}

/** Shows the filters; `onChange(name, value)`. */
export function AuditFilters({ values, onChange }) {
  const input = (name, props, extra) => html`<input ...${props} ...${extra} value=${values[name]} onInput=${(event) => onChange(name, event.target.value)} />`;
  return html`
    <search class="filters">
      ${TEXTS.map(({ name, label, placeholder }, index) => html`
        <${Field} key=${name} label=${label}>
          ${(props) => input(name, props, { type: "search", autocomplete: "off", spellcheck: false, placeholder, "data-filter": index === 0 ? "" : undefined })}<//>`)}
      <${Field} label="From">${(props) => input("since", props, { type: "datetime-local" })}<//>
      <${Field} label="To">${(props) => input("until", props, { type: "datetime-local" })}<//>
      <${Field} label="Outcome">
        ${(props) => html`<select ...${props} value=${values.outcome} onChange=${(event) => onChange("outcome", event.target.value)}>
          ${OUTCOMES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select>`}<//>
    </search>`;
}

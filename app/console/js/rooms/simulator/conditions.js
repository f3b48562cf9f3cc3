import { html, useId } from "../../ui.js";
import { Button } from "../../components/button.js";
import { CONDITION_KEYS } from "./actions.js";

/** Edits values of condition keys: [{ key, value }]. What is not here is as in a usual request. */
export function Conditions({ conditions, onChange }) {
  const list = useId();
  const set = (index, change) => onChange(conditions.map((one, place) => (place === index ? { ...one, ...change } : one)));
  return html`
    <fieldset class="conditions stack tight">
      <legend>Conditions</legend>
      ${conditions.length === 0 && html`<p class="quiet small">As in a usual request: signed, over TLS, from your address, now.</p>`}
      ${conditions.map((one, index) => html`
        <div class="row" key=${index}>
          <input class="grow" list=${list} aria-label="Condition key ${index + 1}" placeholder="aws:SourceIp" value=${one.key} spellcheck=${false}
            onInput=${(event) => set(index, { key: event.target.value })} />
          <input class="grow" aria-label="Value ${index + 1}" placeholder=${CONDITION_KEYS[one.key] ?? ""} value=${one.value} spellcheck=${false}
            onInput=${(event) => set(index, { value: event.target.value })} />
          <${Button} kind="plain" icon="close" label="Remove condition ${index + 1}" onClick=${() => onChange(conditions.filter((_, place) => place !== index))} />
        </div>`)}
      <div><${Button} icon="plus" onClick=${() => onChange([...conditions, { key: "", value: "" }])} disabled=${conditions.length >= 50}>Add a condition<//></div>
      <datalist id=${list}>${Object.keys(CONDITION_KEYS).map((key) => html`<option key=${key} value=${key} />`)}</datalist>
    </fieldset>`;
}

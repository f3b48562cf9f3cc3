// The builder of lifecycle rules.
import { html } from "../../../../ui.js";
import { Button } from "../../../../components/button.js";
import { Check } from "../../../../components/field.js";
import { NumberInput, RuleList, Select, TextInput } from "../inputs.js";
import { Transitions } from "./lifecycle-transitions.js";

/** `onChange(rules)` hears of each change. */
export function LifecycleRules({ rules, bucket, problems, noParts, onChange }) {
  const create = () => ({
    id: null, filter: noParts, status: "Enabled", expiration: null, noncurrent: null, transitions: [], olderTransitions: [], abort: { days: "7" },
  });
  return html`<${RuleList} noun="Rule" path="rules" rules=${rules} problems=${problems} most=${1000} onChange=${onChange} create=${create}
    titleOf=${(rule, index) => rule.id || `Rule ${index + 1}`} render=${(rule, change, problem) => html`<${Rule} rule=${rule} change=${change} problem=${problem} bucket=${bucket} noParts=${noParts} />`} />`;
}

function Rule({ rule, change, problem, bucket, noParts }) {
  const parts = rule.filter ?? noParts;
  const narrow = (changes) => change({ filter: { ...parts, ...changes } });
  return html`
    <div class="columns">
      <${TextInput} label="Name (optional)" value=${rule.id} problem=${problem("id")} onInput=${(id) => change({ id: id || null })} />
      <${Select} label="State" value=${rule.status} options=${[["Enabled", "On"], ["Disabled", "Off"]]} onChange=${(status) => change({ status })} />
    </div>
    <h2>For which objects</h2>
    <div class="columns">
      <${TextInput} label="Keys that begin with" hint="Empty: all." value=${parts.prefix} onInput=${(prefix) => narrow({ prefix: prefix || null })} />
      <${NumberInput} label="Larger than (bytes)" value=${parts.larger} problem=${problem("larger")} onInput=${(larger) => narrow({ larger })} />
      <${NumberInput} label="Smaller than (bytes)" value=${parts.smaller} problem=${problem("smaller")} onInput=${(smaller) => narrow({ smaller })} />
    </div>
    <${Tags} tags=${parts.tags} problem=${problem("tags")} onChange=${(tags) => narrow({ tags })} />
    <h2>What happens</h2>
    ${problem("actions") && html`<p class="problem small" role="alert">${problem("actions")}</p>`}
    <${Expiration} rule=${rule} change=${change} problem=${problem("expiration")} />
    <${Noncurrent} rule=${rule} change=${change} problem=${problem} />
    <${Check} label="Abort unfinished uploads" checked=${Boolean(rule.abort)} onChange=${(on) => change({ abort: on ? { days: "7" } : null })} />
    ${rule.abort && html`<${NumberInput} label="Days after an upload began" value=${rule.abort.days} problem=${problem("abort")} onInput=${(days) => change({ abort: { days } })} />`}
    <${Transitions} rule=${rule} change=${change} problem=${problem} classes=${bucket.storage_classes} />`;
}

function Tags({ tags, problem, onChange }) {
  const set = (index, changes) => onChange(tags.map((tag, at) => (at === index ? { ...tag, ...changes } : tag)));
  return html`
    <div class="stack tight">
      ${tags.map((tag, index) => html`<div class="row" key=${index}>
        <${TextInput} label="Tag" value=${tag.key} onInput=${(key) => set(index, { key })} /><${TextInput} label="Value" value=${tag.value} onInput=${(value) => set(index, { value })} />
        <${Button} kind="plain" icon="close" label="Remove the tag ${tag.key}" onClick=${() => onChange(tags.filter((_, at) => at !== index))} /></div>`)}
      ${problem && html`<span class="problem small" role="alert">${problem}</span>`}
      <div><${Button} kind="plain" icon="plus" onClick=${() => onChange([...tags, { key: "", value: "" }])}>Only with a tag<//></div>
    </div>`;
}

const WHEN = [["", "Never"], ["days", "After some days"], ["date", "On a day"], ["markers", "Remove lone delete markers"]];

function Expiration({ rule, change, problem }) {
  const { expiration } = rule;
  const when = !expiration ? "" : expiration.markers !== null ? "markers" : expiration.date !== null ? "date" : "days";
  const choose = (to) => change({ expiration: { "": null, days: { days: "30", date: null, markers: null }, date: { days: "", date: "", markers: null }, markers: { days: "", date: null, markers: true } }[to] });
  return html`
    <div class="columns">
      <${Select} label="Expire current objects" value=${when} options=${WHEN} onChange=${choose} hint=${when === "days" ? "With versions, they become older versions; without, they are gone." : undefined} />
      ${when === "days" && html`<${NumberInput} label="Days after they were written" value=${expiration.days} problem=${problem} onInput=${(days) => change({ expiration: { ...expiration, days } })} />`}
      ${when === "date" && html`<${TextInput} label="Day (UTC)" type="date" value=${expiration.date.slice(0, 10)} problem=${problem} onInput=${(day) => change({ expiration: { ...expiration, date: day && `${day}T00:00:00.000Z` } })} />`}
    </div>`;
}

function Noncurrent({ rule, change, problem }) {
  const { noncurrent } = rule;
  const set = (changes) => change({ noncurrent: { ...noncurrent, ...changes } });
  return html`
    <${Check} label="Remove older versions" checked=${Boolean(noncurrent)} onChange=${(on) => change({ noncurrent: on ? { days: "30", newer: "" } : null })} />
    ${noncurrent && html`<div class="columns">
      <${NumberInput} label="Days after they became older" value=${noncurrent.days} problem=${problem("noncurrent")} onInput=${(days) => set({ days })} />
      <${NumberInput} label="But keep the newest (optional)" value=${noncurrent.newer} problem=${problem("newer")} onInput=${(newer) => set({ newer })} /></div>`}`;
}

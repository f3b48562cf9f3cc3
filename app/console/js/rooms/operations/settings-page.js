// The settings of this gateway, and what gave each.
import { html } from "../../ui.js";
import { callApi } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Empty } from "../../components/page.js";
import { Badge } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useResource } from "../../resource.js";
import { useFilters } from "./filters.js";

const ORIGINS = {
  option: ["accent", "command line"],
  environment: ["accent", "environment"],
  minio: ["accent", "MinIO's variable"],
  file: ["accent", "file"],
  command: ["", "sluice server"],
  default: ["", "default"],
};

/** Shows settings by name, filtered by a word and by what gave them. */
export function SettingsPage({ query }) {
  const { data, error, reload } = useResource((signal) => callApi("GET", "settings", { signal }), []);
  const [filters, setFilter] = useFilters("settings", ["q", "from"], query);
  const word = filters.q.toLowerCase();
  const found = (data ?? []).filter((one) => matches(one, word, filters.from));
  return html`
    <div class="stack">
      <search class="filters">
        <${Field} label="Find a setting">
          ${(props) => html`<input ...${props} type="search" data-filter="" autocomplete="off" spellcheck=${false} value=${filters.q}
            onInput=${(event) => setFilter("q", event.target.value)} />`}<//>
        <${Field} label="Given by">
          ${(props) => html`<select ...${props} value=${filters.from} onChange=${(event) => setFilter("from", event.target.value)}>
            <option value="">anything</option><option value="given">anything but a default</option>
            ${Object.entries(ORIGINS).map(([name, [, label]]) => html`<option key=${name} value=${name}>${label}</option>`)}</select>`}<//>
      </search>
      <${ErrorNote} error=${error} retry=${reload} />
      ${data && html`<p class="quiet small" role="status">${formatPlural(found.length, "setting")}. Settings are changed where they are given, and hold from the next start; secrets are never shown.</p>`}
      ${data && !found.length && html`<${Empty} title="No such setting">Try another word, or another origin.<//>`}
      <ul class="settings">${found.map((one) => html`<${Setting} key=${one.name} setting=${one} />`)}</ul>
    </div>`;
}

function matches(one, word, from) {
  if (from === "given" ? one.origin === "default" : from && one.origin !== from) return false;
  return !word || `${one.name} ${one.description} ${one.given_by} ${JSON.stringify(one.value)}`.toLowerCase().includes(word);
}

function Setting({ setting }) {
  const [kind, label] = ORIGINS[setting.origin];
  const value = typeof setting.value === "object" && setting.value !== null ? JSON.stringify(setting.value, null, 2) : String(setting.value ?? "not set");
  const differs = setting.origin !== "default" && setting.default !== null && JSON.stringify(setting.default) !== JSON.stringify(setting.value);
  return html`
    <li class="card">
      <div class="row"><code class="grow">${setting.name}</code><${Badge} kind=${kind} title=${setting.given_by}>${label}<//></div>
      ${value.includes("\n") ? html`<pre tabindex="0" aria-label=${`Value of ${setting.name}`}>${value}</pre>` : html`<p class="mono setting-value">${value === "" ? "(empty)" : value}</p>`}
      <p class="quiet small">${renderWords(setting.description)}${differs && ` Default: ${JSON.stringify(setting.default)}.`}${setting.given_by && ` Given by ${setting.given_by}.`}</p>
    </li>`;
}

/** Sets what stands between backticks as code. */
function renderWords(text) {
  return text.split("`").map((part, index) => (index % 2 ? html`<code key=${index}>${part}</code>` : part));
}

// Object lock: whether versions can be protected, and the retention that new ones get.
import { html } from "../../../../ui.js";
import { Check } from "../../../../components/field.js";
import { NumberInput, numberProblem, Select } from "../inputs.js";
import { child, documentOf, number, text } from "../shape.js";

const MODES = [["GOVERNANCE", "Governance – those with a special right may lift it"], ["COMPLIANCE", "Compliance – nobody can lift it, not even root"]];
const UNITS = [["days", "days"], ["years", "years"]];
const MOST = { days: 36_500, years: 100 };
const RETENTION = { mode: text("Mode"), days: number("Days"), years: number("Years") };

function Form({ value, problems, onChange }) {
  if (!value.enabled) {
    return html`<${Check} label="Turn object lock on" hint="Versions must be enabled. It can never be turned off again." checked=${false} onChange=${() => onChange({ enabled: "Enabled", rule: null })} />`;
  }
  const retention = value.rule?.retention;
  const unit = retention?.years ? "years" : retention?.unit ?? "days";
  const set = (changes) => onChange({ ...value, rule: { retention: { ...retention, ...changes } } });
  return html`
    <div class="stack">
      <p>Object lock is on.</p>
      <${Check} label="New versions get a retention by default" hint="Without it, each writer decides for itself." checked=${Boolean(retention)}
        onChange=${(on) => onChange({ ...value, rule: on ? { retention: { mode: "GOVERNANCE", days: "30", years: "" } } : null })} />
      ${retention && html`
        <${Select} label="Mode" value=${retention.mode} options=${MODES} onChange=${(mode) => set({ mode })} />
        <div class="columns">
          <${NumberInput} label="For" value=${retention[unit]} problem=${problems.period} onInput=${(period) => set({ [unit]: period, unit })} />
          <${Select} label="Unit" value=${unit} options=${UNITS} onChange=${(other) => set({ days: "", years: "", unit: other, [other]: retention[unit] || "1" })} />
        </div>`}
    </div>`;
}

export default {
  name: "object-lock",
  title: "Object lock",
  about: "Protects versions from removal for a time (retention), or until it is lifted (legal hold). Deleting an object still works: it adds a delete marker, and the locked version stays below.",
  query: { "object-lock": "" },
  absent: ["ObjectLockConfigurationNotFoundError"],
  root: "ObjectLockConfiguration",
  ...documentOf("ObjectLockConfiguration", { enabled: text("ObjectLockEnabled"), rule: child("Rule", { retention: child("DefaultRetention", RETENTION) }) }),
  empty: () => ({ enabled: null, rule: null }),
  nothing: "off",
  summary: ({ rule }) => {
    const one = rule?.retention;
    return one ? `on; new versions are kept ${one.years ? `${one.years} years` : `${one.days} days`} (${one.mode.toLowerCase()})` : "on; no default retention";
  },
  problems: ({ enabled, rule }) => {
    const one = rule?.retention;
    const unit = one?.years || one?.unit === "years" ? "years" : "days";
    return { enabled: enabled ? "" : "Tick the box first.", period: one ? numberProblem(one[unit], { most: MOST[unit] }) : "" };
  },
  question: (value, before) => {
    if (!before.enabled) return { title: "Turn object lock on?", message: "It can never be turned off again for this bucket.", action: "Turn it on" };
    const mode = value.rule?.retention?.mode;
    return mode === "COMPLIANCE" && before.rule?.retention?.mode !== mode
      ? { title: "Compliance by default?", message: "Nobody can delete new versions before their time, not even root. Only the disk's end removes them.", action: "Save it" } : null;
  },
  formOnly: true,
  Form,
};

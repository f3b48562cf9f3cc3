// Cross-origin rules: which pages of other origins may read answers of this bucket.
import { html } from "../../../../ui.js";
import { formatPlural } from "../../../../format.js";
import { NumberInput, numberProblem, RuleList, TextInput, Ticks, Words } from "../inputs.js";
import { documentOf, list, number, text, texts } from "../shape.js";

const METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"];
const RULE = {
  id: text("ID"), headers: texts("AllowedHeader"), methods: texts("AllowedMethod"), origins: texts("AllowedOrigin"),
  exposed: texts("ExposeHeader"), seconds: number("MaxAgeSeconds"),
};
const filled = (values) => values.map((value) => value.trim()).filter(Boolean);

function Form({ value, problems, onChange }) {
  return html`<${RuleList} noun="Rule" path="rules" rules=${value.rules} problems=${problems} onChange=${(rules) => onChange({ rules })}
    create=${() => ({ id: null, headers: ["*"], methods: ["GET", "HEAD"], origins: [""], exposed: ["ETag"], seconds: "3600" })} titleOf=${(rule, index) => rule.id || `Rule ${index + 1}`}
    render=${(rule, change, problem) => html`
      <${Words} label="Origins" hint="Such as https://app.example.com; * is any, https://*.example.com any below." values=${rule.origins} problem=${problem("origins")} onChange=${(origins) => change({ origins })} />
      <${Ticks} legend="Methods" options=${METHODS.map((name) => [name, name])} values=${rule.methods} problem=${problem("methods")} onChange=${(methods) => change({ methods })} />
      <div class="columns">
        <${Words} label="Headers that requests may send" hint="* allows all." values=${rule.headers} problem=${problem("headers")} onChange=${(headers) => change({ headers })} />
        <${Words} label="Headers that pages may read" hint="Such as ETag or x-amz-version-id; no *." values=${rule.exposed} problem=${problem("exposed")} onChange=${(exposed) => change({ exposed })} />
      </div>
      <div class="columns">
        <${NumberInput} label="Seconds that browsers remember it" value=${rule.seconds} problem=${problem("seconds")} onInput=${(seconds) => change({ seconds })} />
        <${TextInput} label="Name (optional)" value=${rule.id} problem=${problem("id")} onInput=${(id) => change({ id: id || null })} />
      </div>`} />`;
}

function problemsOf(rule) {
  const stars = (values) => values.find((value) => value.split("*").length > 2);
  const origin = filled(rule.origins).find((value) => value !== "*" && !/^[a-z][a-z0-9+.-]*:\/\/[^/\s]+$/i.test(value) && !value.includes("*"));
  return {
    origins: filled(rule.origins).length === 0 ? "Name at least one origin." : stars(rule.origins) ? "One * only." : origin ? `“${origin}” is no origin: scheme and host, no path, such as https://app.example.com.` : "",
    methods: rule.methods.length ? "" : "Choose at least one.",
    headers: stars(rule.headers) ? "One * only." : "",
    exposed: rule.exposed.some((value) => value.includes("*")) ? "A * is not allowed here." : rule.exposed.some((value) => /[^\x20-\x7e]/.test(value)) ? "Only ASCII is allowed here." : "",
    seconds: numberProblem(rule.seconds, { least: 0, most: 999_999_999, required: false }),
    id: (rule.id ?? "").length > 255 ? "At most 255 characters." : "",
  };
}

export default {
  name: "cors",
  title: "Cross-origin access (CORS)",
  about: "Browsers let pages of other sites read this bucket's answers only if a rule names them. Rules give no rights: requests still need a key or a public policy.",
  query: { cors: "" },
  absent: ["NoSuchCORSConfiguration"],
  root: "CORSConfiguration",
  ...documentOf("CORSConfiguration", { rules: list("CORSRule", RULE) }),
  empty: () => ({ rules: [] }),
  nothing: "no pages of other sites",
  summary: ({ rules }) => `${formatPlural(rules.length, "rule")}: ${[...new Set(rules.flatMap((rule) => rule.origins))].slice(0, 3).join(", ")}`,
  tidy: ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, origins: filled(rule.origins), headers: filled(rule.headers), exposed: filled(rule.exposed) })) }),
  problems: ({ rules }) => ({
    rules: rules.length ? "" : "Add a rule, or remove the setting.",
    ...Object.fromEntries(rules.flatMap((rule, index) => Object.entries(problemsOf(rule)).map(([name, problem]) => [`rules.${index}.${name}`, problem]))),
  }),
  loss: "Pages of other sites cannot read this bucket any more.",
  Form,
};

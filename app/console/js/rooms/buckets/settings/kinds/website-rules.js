// Routing rules of a website.
import { html } from "../../../../ui.js";
import { RuleList, Select, TextInput } from "../inputs.js";

const PROTOCOLS = [["", "as the request"], ["https", "https"], ["http", "http"]];
const EMPTY = { host: null, code: null, protocol: null, replacePrefix: null, replaceKey: null };

/** `onChange(rules)` hears of each change. */
export function RoutingRules({ rules, problems, onChange }) {
  return html`<${RuleList} noun="Redirect" path="rules" rules=${rules} problems=${problems} most=${50} onChange=${onChange}
    create=${() => ({ condition: { error: null, prefix: "old/" }, redirect: { ...EMPTY, replacePrefix: "new/" } })} render=${renderRule} />`;
}

function renderRule({ condition, redirect }, change, problem) {
  const when = (changes) => {
    const next = { error: null, prefix: null, ...condition, ...changes };
    change({ condition: next.error || next.prefix ? next : null });
  };
  const to = (changes) => change({ redirect: { ...redirect, ...changes } });
  const mode = redirect.replaceKey !== null ? "key" : redirect.replacePrefix !== null ? "prefix" : "";
  const choose = (name) => to({ replaceKey: name === "key" ? "" : null, replacePrefix: name === "prefix" ? "" : null });
  return html`
    <div class="columns">
      <${TextInput} label="If the key begins with" value=${condition?.prefix} onInput=${(prefix) => when({ prefix: prefix || null })} />
      <${TextInput} label="and the answer would be" hint="Such as 404; empty: any." value=${condition?.error} problem=${problem("error")} onInput=${(error) => when({ error: error.trim() || null })} />
    </div>
    <div class="columns">
      <${TextInput} label="Go to host" hint="Empty: the same." value=${redirect.host} problem=${problem("redirect")} onInput=${(host) => to({ host: host.trim() || null })} />
      <${Select} label="Protocol" value=${redirect.protocol ?? ""} options=${PROTOCOLS} onChange=${(protocol) => to({ protocol: protocol || null })} />
      <${Select} label="Key" value=${mode} options=${[["", "the same"], ["prefix", "with another beginning"], ["key", "another one"]]} onChange=${choose} />
      ${mode === "prefix" && html`<${TextInput} label="New beginning" value=${redirect.replacePrefix} onInput=${(replacePrefix) => to({ replacePrefix })} />`}
      ${mode === "key" && html`<${TextInput} label="New key" value=${redirect.replaceKey} onInput=${(replaceKey) => to({ replaceKey })} />`}
      <${TextInput} label="Code (optional)" hint="301 without." value=${redirect.code} problem=${problem("code")} onInput=${(code) => to({ code: code.trim() || null })} />
    </div>`;
}

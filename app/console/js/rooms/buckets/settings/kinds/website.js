// The website of a bucket: index and error documents, redirects.
import { html } from "../../../../ui.js";
import { Select, TextInput } from "../inputs.js";
import { RoutingRules } from "./website-rules.js";
import { child, documentOf, list, optional, text } from "../shape.js";

const REDIRECT = { host: optional("HostName"), code: optional("HttpRedirectCode"), protocol: optional("Protocol"), replacePrefix: text("ReplaceKeyPrefixWith"), replaceKey: text("ReplaceKeyWith") };
const CONDITION = { error: optional("HttpErrorCodeReturnedEquals"), prefix: optional("KeyPrefixEquals") };
const FIELDS = {
  all: child("RedirectAllRequestsTo", { host: text("HostName"), protocol: optional("Protocol") }),
  index: child("IndexDocument", { suffix: text("Suffix") }),
  error: child("ErrorDocument", { key: text("Key") }),
  routing: child("RoutingRules", { rules: list("RoutingRule", { condition: child("Condition", CONDITION), redirect: child("Redirect", REDIRECT) }) }),
};
const PROTOCOLS = [["", "as the request"], ["https", "https"], ["http", "http"]];

function Form({ value, problems, onChange }) {
  const set = (changes) => onChange({ ...value, ...changes });
  const mode = value.all ? "redirect" : "pages";
  const choose = (to) => onChange(to === "redirect" ? { all: { host: "", protocol: null }, index: null, error: null, routing: null } : { all: null, index: { suffix: "index.html" }, error: null, routing: null });
  return html`
    <div class="stack">
      <${Select} label="The website" value=${mode} options=${[["pages", "shows the objects of this bucket"], ["redirect", "sends everybody to another host"]]} onChange=${choose} />
      ${value.all && html`<div class="columns">
        <${TextInput} label="Host" value=${value.all.host} problem=${problems.host} hint="Such as www.example.com" onInput=${(host) => set({ all: { ...value.all, host: host.trim() } })} />
        <${Select} label="Protocol" value=${value.all.protocol ?? ""} options=${PROTOCOLS} onChange=${(protocol) => set({ all: { ...value.all, protocol: protocol || null } })} /></div>`}
      ${!value.all && html`
        <div class="columns">
          <${TextInput} label="Index document" hint="Shown for a folder, such as index.html." value=${value.index?.suffix} problem=${problems.index} onInput=${(suffix) => set({ index: { suffix } })} />
          <${TextInput} label="Error document (optional)" hint="The key of an object that is shown with errors." value=${value.error?.key} onInput=${(key) => set({ error: key ? { key } : null })} />
        </div>
        <${RoutingRules} rules=${value.routing?.rules ?? []} problems=${problems} onChange=${(rules) => set({ routing: rules.length ? { rules } : null })} />`}
    </div>`;
}

function problemsOf(value) {
  const found = { host: value.all && !value.all.host ? "Write a host name." : "" };
  if (!value.all) found.index = !value.index?.suffix ? "Write a name, such as index.html." : value.index.suffix.includes("/") ? "It may not contain a slash." : "";
  (value.routing?.rules ?? []).forEach(({ condition, redirect }, index) => {
    const { code } = redirect;
    found[`rules.${index}.error`] = condition?.error && !/^[45]\d\d$/.test(condition.error) ? "A code from 400 to 599." : "";
    found[`rules.${index}.code`] = code && !(/^3\d\d$/.test(code) && code !== "300") ? "A code from 301 to 399." : "";
    found[`rules.${index}.redirect`] = Object.values(redirect).every((one) => one === null || one === "") ? "Say where to." : "";
  });
  return found;
}

export default {
  name: "website",
  title: "Website",
  about: "The gateway's website listener shows the objects as pages. Visitors have no keys: they see what the bucket's policy lets everybody read.",
  query: { website: "" },
  absent: ["NoSuchWebsiteConfiguration"],
  root: "WebsiteConfiguration",
  ...documentOf("WebsiteConfiguration", FIELDS),
  empty: () => ({ all: null, index: { suffix: "index.html" }, error: null, routing: null }),
  summary: (value) => (value.all ? `redirects to ${value.all.host}` : `index ${value.index.suffix}${value.error ? `, error ${value.error.key}` : ""}`),
  problems: problemsOf,
  saveUnchanged: true,
  loss: "The website answers 404 then. The objects stay.",
  Form,
};

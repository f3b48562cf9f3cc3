import { html } from "../../ui.js";
import { formatPlural } from "../../format.js";
import { Icon } from "../../components/icon.js";
import { Copy, Time } from "../../components/values.js";

const KINDS = { error: "bad", warning: "warn", notice: "" };
const WORDS = { error: "Now", warning: "Soon", notice: "When you have time" };

/** What needs attention, with what to do; or that all is well, and what is worth knowing. */
export function Attention({ overview }) {
  if (!overview) return html`<div aria-busy="true"></div>`;
  const { attention, unchecked } = overview;
  const urgent = attention.some((finding) => finding.severity !== "notice");
  return html`
    <section aria-labelledby="attention" class="stack tight">
      <h2 id="attention" class=${urgent ? "" : "screen-reader"}>Needs attention</h2>
      ${!urgent && html`<p class="note good calm"><${Icon} name="check" />
        ${unchecked.length ? "Nothing needs attention in what could be checked." : "All is well."}
        <span class="quiet">${describeStores(overview.stores)}</span></p>`}
      ${attention.length > 0 && html`<ul class="findings">
        ${attention.map((finding) => html`<${Finding} key=${`${finding.kind} ${finding.subject} ${finding.title}`} finding=${finding} />`)}</ul>`}
      ${unchecked.length > 0 && html`<p class="small quiet" role="status">Could not be checked just now: ${unchecked.join(", ")}.</p>`}
    </section>`;
}

function describeStores(stores) {
  const up = stores.filter((store) => store.condition === "up" && store.silent_since === null).length;
  return up === stores.length ? `${formatPlural(up, "store")} up, nothing damaged, nothing late.` : "";
}

function Finding({ finding }) {
  return html`
    <li class="note ${KINDS[finding.severity]}">
      <div class="row">
        <strong class="grow">${finding.title}</strong>
        <span class="small quiet">${finding.since ? html`since <${Time} value=${finding.since} />` : WORDS[finding.severity]}</span>
      </div>
      <p>${finding.advice}</p>
      ${(finding.command || finding.link) && html`<div class="row">
        ${finding.command && html`<code>${finding.command}</code><${Copy} text=${finding.command} label="Copy the command" />`}
        ${finding.link && html`<a href=${`/console/${finding.link}`}>${linkText(finding)}</a>`}
      </div>`}
    </li>`;
}

function linkText({ link, subject }) {
  if (link.startsWith("stores")) return `Look at ${subject}`;
  return link === "people" ? "Look at the keys" : "Look there";
}

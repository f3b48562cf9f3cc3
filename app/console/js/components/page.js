import { html, useEffect, useRef } from "../ui.js";
import { Button } from "./button.js";

/**
 * The frame of a page: its heading takes the focus when the page opens. `crumbs`: [{ label, href }] above it;
 * `actions`: its buttons.
 */
export function Page({ title, crumbs = [], actions, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · Sluice`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`
    ${crumbs.length > 0 && html`<nav aria-label="Breadcrumb"><ol class="crumbs">
      ${crumbs.map(({ label, href }) => html`<li key=${href}><a href=${href}>${label}</a></li>`)}</ol></nav>`}
    <div class="page-head"><h1 tabindex="-1" ref=${heading}>${title}</h1><div class="row">${actions}</div></div>
    ${children}`;
}

/** What stands where there is nothing yet: what it is for, and the next step. */
export function Empty({ title, children, action, onAction, href }) {
  return html`
    <div class="empty">
      <h2>${title}</h2>
      <div class="quiet">${children}</div>
      ${action && html`<${Button} kind="primary" onClick=${onAction} href=${href}>${action}<//>`}
    </div>`;
}

/** Tabs that are pages: [{ label, href, current }]. */
export function Tabs({ label, tabs }) {
  const strip = useRef(null);
  const current = tabs.find((tab) => tab.current)?.href;
  useEffect(() => strip.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]); // on a phone
  return html`<nav class="tabs" aria-label=${label} ref=${strip}>
    ${tabs.map((tab) => html`<a key=${tab.href} href=${tab.href} aria-current=${tab.current ? "page" : undefined}>${tab.label}</a>`)}
  </nav>`;
}

import { html, useEffect, useRef, useState } from "../ui.js";
import { Button } from "./button.js";

/** A button that opens a list of actions: [{ label, onClick | href, danger, disabled, why }]. Arrows move, Esc closes. */
export function Menu({ label, icon = "more", text, kind = "plain", items }) {
  const [open, setOpen] = useState(false);
  const root = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    root.current.querySelector("[role=menuitem]:not(:disabled)")?.focus();
    const outside = (event) => root.current.contains(event.target) || setOpen(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(false);
    root.current.querySelector("button").focus();
  };
  const onKeyDown = (event) => {
    if (!open) return;
    if (event.key === "Escape") close();
    else if (event.key === "Tab") setOpen(false);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(root.current, event.key === "ArrowDown" ? 1 : -1);
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  const choose = (item) => {
    close();
    item.onClick?.();
  };
  return html`
    <div class="menu" ref=${root} onKeyDown=${onKeyDown}>
      <${Button} kind=${kind} icon=${icon} label=${label} aria-haspopup="menu" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${text}<//>
      ${open && html`<div class="menu-list" role="menu" aria-label=${label}>${items.map((item) => renderItem(item, choose))}</div>`}
    </div>`;
}

function renderItem(item, choose) {
  const shared = { role: "menuitem", tabindex: -1, class: item.danger ? "danger" : "", key: item.label, onClick: () => choose(item) };
  if (item.href) return html`<a href=${item.href} ...${shared}>${item.label}</a>`;
  return html`<button type="button" disabled=${item.disabled} title=${item.disabled ? item.why : undefined} ...${shared}>${item.label}</button>`;
}

function moveFocus(root, step) {
  const items = [...root.querySelectorAll("[role=menuitem]:not(:disabled)")];
  const next = items.indexOf(document.activeElement) + step;
  items[(next + items.length) % items.length]?.focus();
}

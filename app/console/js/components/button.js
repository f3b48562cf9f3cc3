import { classes, html } from "../ui.js";
import { Icon } from "./icon.js";

const refuse = (event) => {
  event.preventDefault();
  event.stopPropagation();
};
const WAITING = { "aria-busy": "true", "aria-disabled": "true", onClick: refuse };

/**
 * A button, or with `href` a link that looks like one. `kind`: primary, danger, plain; `busy` waits for its action, with the focus kept;
 * `label` names a button that has an icon only; `why` says why it is disabled.
 */
export function Button({ kind, icon, label, busy, disabled, why, href, type = "button", children, class: extra, ...rest }) {
  const shared = { class: classes("button", kind, extra), "aria-label": label, title: (disabled && why) || label, ...rest };
  const content = html`${icon && html`<${Icon} name=${icon} />`}${children}`;
  if (href && !disabled) return html`<a href=${href} ...${shared}>${content}</a>`;
  return html`<button type=${type} disabled=${disabled} ...${shared} ...${busy && WAITING}>${content}</button>`;
}

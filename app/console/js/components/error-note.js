import { html } from "../ui.js";
import { Button } from "./button.js";

/** Says what went wrong: the message, S3's code, the request's id, and a way to try again. Nothing for no error. */
export function ErrorNote({ error, retry }) {
  if (!error) return null;
  return html`
    <div class="note bad stack tight" role="alert">
      <p>${error.message || String(error)}</p>
      ${(error.code || error.requestId) && html`<p class="small quiet">
        ${error.code}${error.code && error.requestId && " · "}${error.requestId && html`request <code>${error.requestId}</code>`}</p>`}
      ${error.retryAfterSeconds && html`<p class="small">Try again in ${error.retryAfterSeconds} seconds.</p>`}
      ${retry && html`<div><${Button} icon="refresh" onClick=${retry}>Try again<//></div>`}
    </div>`;
}

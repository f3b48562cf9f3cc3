import { html, signal, useSignal } from "../ui.js";
import { Button } from "./button.js";

const SHOWN_MS = 6000;
const LONG_MS = 15_000;
const MAX_SHOWN = 4;

const shown = signal([]);
let count = 0;

/** Says that something is done, or failed. `kind`: good, bad; `action`: { label, run } such as an undo. */
export function toast(message, { kind = "good", action } = {}) {
  count += 1;
  const id = count;
  shown.value = [...shown.peek(), { id, message, kind, action }].slice(-MAX_SHOWN);
  setTimeout(() => dismiss(id), action || kind === "bad" ? LONG_MS : SHOWN_MS);
}

function dismiss(id) {
  shown.value = shown.peek().filter((one) => one.id !== id);
}

/** Shows the messages; once in the shell. */
export function Toasts() {
  const list = useSignal(shown);
  const act = (one) => {
    dismiss(one.id);
    one.action.run();
  };
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${list.map((one) => html`
        <div class="toast ${one.kind}" key=${one.id}>
          <span class="grow">${one.message}</span>
          ${one.action && html`<${Button} onClick=${() => act(one)}>${one.action.label}<//>`}
          <${Button} kind="plain" icon="close" label="Dismiss" onClick=${() => dismiss(one.id)} />
        </div>`)}
    </div>`;
}

// Values as people read them, with the exact one in the title.
import { html, useState } from "../ui.js";
import { formatBytes, formatCount, formatTime, formatUtc } from "../format.js";
import { Button } from "./button.js";
import { toast } from "./toast.js";

/** A size: 1.50 KiB, exact on hover. */
export function Bytes({ value }) {
  return html`<span class="nowrap" title=${value >= 1024 ? `${formatCount(value)} bytes` : undefined}>${formatBytes(value)}</span>`;
}

/** A moment in the local zone, UTC on hover. `value`: a Date, milliseconds, or ISO text; none: a dash. */
export function Time({ value }) {
  if (value === null || value === undefined || value === "") return "–";
  return html`<time class="nowrap" datetime=${new Date(value).toISOString()} title=${formatUtc(value)}>${formatTime(value)}</time>`;
}

/** The name of an operation, which may break before its capitals. */
export function Operation({ name }) {
  return name.split(/(?<=[a-z:])(?=[A-Z])/).map((part, index) => (index ? html`<wbr />${part}` : part));
}

/** A badge; `kind`: good, warn, bad, accent. */
export function Badge({ kind = "", title, children }) {
  return html`<span class="badge ${kind}" title=${title}>${children}</span>`;
}

/** A button that copies text, on plain http as well, and where the browser keeps its clipboard from the page. */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) {
      toast("The browser does not let this page copy. Select the text, and copy it by hand.", { kind: "bad" });
      return;
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} kind="plain" icon=${done ? "check" : "copy"} label=${done ? "Copied" : label} onClick=${copy} />`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // there is no clipboard on plain http, or the permission is denied
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}

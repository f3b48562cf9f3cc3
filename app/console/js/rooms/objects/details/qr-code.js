// A QR code as a picture of squares.
import { html } from "../../../ui.js";
import { ErrorNote } from "../../../components/error-note.js";
import { useResource } from "../../../resource.js";

const QUIET = 4;

async function squaresOf(text) {
  const { default: qrcode } = await import("../../../../vendor/qrcode-generator.js");
  const code = qrcode(0, "L");
  code.addData(text, "Byte");
  code.make();
  const count = code.getModuleCount();
  let path = "";
  for (let row = 0; row < count; row += 1) {
    for (let column = 0; column < count; column += 1) if (code.isDark(row, column)) path += `M${column + QUIET} ${row + QUIET}h1v1h-1z`;
  }
  return { path, size: count + 2 * QUIET };
}

/** Shows a text as a QR code; its generator is loaded when it is first needed. */
export function QrCode({ text, label }) {
  const { data, error } = useResource(() => squaresOf(text), [text]);
  if (error) return html`<${ErrorNote} error=${new Error(`There is no QR code of this: ${error.message ?? error}`)} />`;
  return data && html`<svg class="qr-code" role="img" aria-label=${label} viewBox="0 0 ${data.size} ${data.size}" shape-rendering="crispEdges"><path d=${data.path} /></svg>`;
}

// A text with line numbers; the line of a problem is marked.
import { html, useEffect, useRef } from "../../../ui.js";

/** `control` are the attributes of a Field; `wrongLine` counts from 1. */
export function LineEditor({ control = {}, value, onInput, wrongLine, rows = 18, label }) {
  const numbers = useRef(null);
  const area = useRef(null);
  const count = value.split("\n").length;
  const scroll = () => {
    numbers.current.scrollTop = area.current.scrollTop;
  };
  useEffect(() => {
    const fit = () => {
      if (!numbers.current) return; // the observer may still have a word after it is gone
      numbers.current.style.height = `${area.current.offsetHeight}px`;
      scroll();
    };
    const observer = new ResizeObserver(fit);
    observer.observe(area.current);
    return () => observer.disconnect();
  }, []);
  useEffect(scroll, [value]);
  const lines = Array.from({ length: count }, (_, index) => index + 1);
  return html`
    <div class="line-editor">
      <pre ref=${numbers} aria-hidden="true">${lines.map((line) => (line === wrongLine ? html`<span class="wrong" key=${line}>${line}</span>` : `${line}\n`))}${"\n\n"}</pre>
      <textarea ...${control} ref=${area} class="code grow" aria-label=${label} rows=${rows} wrap="off" spellcheck=${false} autocapitalize="off" value=${value}
        onInput=${(event) => onInput(event.target.value)} onScroll=${scroll}></textarea>
    </div>`;
}

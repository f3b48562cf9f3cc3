// An editor for JSON texts, such as policies, that says what is wrong as one types.
import { html, useEffect, useState } from "../ui.js";
import { Button } from "./button.js";
import { Field } from "./field.js";
import { findJsonFault } from "./json-fault.js";

const CHECK_AFTER_MS = 350;

/**
 * A JSON text. `onInput(text)`; `check(text, abortSignal)` resolves to what is wrong with well-formed JSON, "" for nothing;
 * `onProblem(text)` hears of each change of that, so that a form can hold back its button.
 */
export function CodeEditor({ label, hint, value, onInput, check, onProblem, rows = 14, readOnly = false }) {
  const problem = useProblem(value, check, readOnly);
  useEffect(() => onProblem?.(problem), [problem]);
  const format = () => onInput(formatJson(value));
  const formatted = jsonProblem(value) ? value : formatJson(value);
  return html`
    <div class="stack tight">
      <${Field} label=${label} hint=${hint} problem=${problem}>
        ${(control) => html`<textarea ...${control} class="code" rows=${rows} spellcheck=${false} autocapitalize="off" wrap="off"
          readonly=${readOnly} value=${value} onInput=${(event) => onInput(event.target.value)} />`}<//>
      ${!readOnly && html`<div class="row"><${Button} onClick=${format} disabled=${formatted === value}
        why="It is in order already, or no JSON yet">Format<//></div>`}
    </div>`;
}

function useProblem(text, check, readOnly) {
  const [found, setFound] = useState({ text: null, problem: "" });
  const syntax = readOnly ? "" : jsonProblem(text);
  useEffect(() => {
    if (readOnly || syntax || !check) return undefined;
    const abort = new AbortController();
    const ask = () => check(text, abort.signal).then(
      (problem) => abort.signal.aborted || setFound({ text, problem }),
      () => abort.signal.aborted || setFound({ text, problem: "" }), // saving it will say what is wrong
    );
    const timer = setTimeout(ask, CHECK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, syntax, readOnly]);
  return syntax || (check && !readOnly ? found.problem : "");
}

/** Returns what keeps a text from being JSON, with its line and column; "" for nothing. */
export function jsonProblem(text) {
  if (!text.trim()) return "Write JSON here.";
  const fault = findJsonFault(text);
  return fault ? `${placeOf(text, fault.position)}: ${fault.expected} is expected here.` : "";
}

function placeOf(text, position) {
  const lines = text.slice(0, position).split("\n");
  return `Line ${lines.length}, column ${lines.at(-1).length + 1}`;
}

/** Returns JSON with two spaces a level. Throws SyntaxError for another text. */
export function formatJson(text) {
  return JSON.stringify(JSON.parse(text), null, 2);
}

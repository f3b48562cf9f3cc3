// The first rows of a CSV or TSV object.
import { html, useMemo } from "../../../ui.js";
import { ErrorNote } from "../../../components/error-note.js";
import { useResource } from "../../../resource.js";
import { readText } from "./head-of-text.js";
import { HeadTable } from "./head-table.js";

const MAX_BYTES = 128 * 1024;
const MAX_ROWS = 100;
const SEPARATORS = [",", ";", "\t", "|"];

/** Shows a table. */
export function CsvPreview({ bucket, objectKey, head }) {
  const { data, error, reload } = useResource((signal) => readText(bucket, objectKey, head.size, MAX_BYTES, signal), [bucket, objectKey]);
  const rows = useMemo(() => data && parseCsv(data.text, MAX_ROWS + 1, data.isWhole), [data]);
  if (!rows) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  const [names = [], ...body] = rows;
  return html`<${HeadTable} columns=${names.map((name) => ({ name }))} rows=${body} caption="First rows" />
    <p class="quiet small">The first ${body.length} rows${data.isWhole && body.length < MAX_ROWS ? ", which are all" : ""}.</p>`;
}

/** Returns at most `most` rows of a text; an unfinished last one is left out unless the text `isWhole`. */
export function parseCsv(text, most, isWhole) {
  const line = text.slice(0, text.indexOf("\n") < 0 ? undefined : text.indexOf("\n"));
  const separator = SEPARATORS.reduce((best, one) => (line.split(one).length > line.split(best).length ? one : best));
  const rows = [];
  let [row, cell, quoted] = [[], "", false];
  const endRow = () => {
    rows.push([...row, cell]);
    [row, cell] = [[], ""];
  };
  for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length && rows.length < most; at += 1) {
    const char = text[at];
    if (quoted && char === '"' && text[at + 1] === '"') cell += text[(at += 1)];
    else if (char === '"' && (quoted || !cell)) quoted = !quoted;
    else if (quoted) cell += char;
    else if (char === separator) [row, cell] = [[...row, cell], ""];
    else if (char === "\n") endRow();
    else if (char !== "\r") cell += char;
  }
  if (rows.length < most && isWhole && (cell || row.length)) endRow();
  return rows;
}

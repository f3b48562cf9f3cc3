import { html, useMemo, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { formatPlural } from "../../format.js";
import { diffLines, foldSame } from "./diff.js";

const MAX_LINES = 1000;
const SIGNS = { same: " ", old: "−", new: "+" };
const WORDS = { old: "removed", new: "added" };

/** Shows how two texts differ, line by line. `layout`: side, or inline. */
export function DiffView({ before, after, layout }) {
  const [limit, setLimit] = useState(MAX_LINES);
  const lines = useMemo(() => {
    const found = diffLines(before, after);
    return found && foldSame(found);
  }, [before, after]);
  if (!lines) return html`<p class="quiet">The texts differ too much to be shown line by line.</p>`;
  const rows = layout === "side" ? pairLines(lines) : lines;
  return html`
    <div class="text-diff scroll" tabindex="0" role="region" aria-label="Differences of the content">
      <table class=${layout}><caption class="screen-reader">Lines of both versions</caption>
        <tbody>${rows.slice(0, limit).map(layout === "side" ? renderPair : renderLine)}</tbody></table>
    </div>
    ${rows.length > limit && html`<div><${Button} onClick=${() => setLimit(limit * 2)}>Show more lines<//></div>`}`;
}

function renderLine(line, index) {
  if (line.kind === "gap") return html`<tr key=${index} class="gap"><td colspan="3">${formatPlural(line.count, "equal line")}</td></tr>`;
  return html`<tr key=${index} class=${line.kind}><td class="number">${line.before}</td><td class="number">${line.after}</td>${renderCell(line)}</tr>`;
}

function renderPair([left, right], index) {
  if (left?.kind === "gap") return html`<tr key=${index} class="gap"><td colspan="4">${formatPlural(left.count, "equal line")}</td></tr>`;
  return html`<tr key=${index}>
    <td class="number">${left?.before}</td>${renderCell(left)}<td class="number">${right?.after}</td>${renderCell(right)}</tr>`;
}

function renderCell(line) {
  if (!line) return html`<td></td>`;
  return html`<td class="text ${line.kind}"><span aria-hidden="true">${SIGNS[line.kind]} </span>${WORDS[line.kind]
    && html`<span class="screen-reader">${WORDS[line.kind]}: </span>`}${line.text}</td>`;
}

function pairLines(lines) {
  const pairs = [];
  let olds = [];
  const flush = () => {
    olds.forEach((line) => pairs.push([line, null]));
    olds = [];
  };
  for (const line of lines) {
    if (line.kind === "old") olds.push(line);
    else if (line.kind === "new" && olds.length) pairs.push([olds.shift(), line]);
    else {
      flush();
      pairs.push(line.kind === "new" ? [null, line] : [line, line]);
    }
  }
  flush();
  return pairs;
}

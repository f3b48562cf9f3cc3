// What a change changed, line by line.
import { html, useMemo } from "../../../ui.js";

const MAX_LINES = 600;

/** Shows two JSON values as lines: those that went, those that came, and those that stayed. */
export function Diff({ before, after }) {
  const lines = useMemo(() => compareLines(toLines(before), toLines(after)), [before, after]);
  return html`
    <section class="stack tight">
      <h3>Before and after</h3>
      <pre class="change-lines" tabindex="0" aria-label="Lines before and after the change">${lines.map(({ sign, text }, index) => html`
        <span key=${index} class="diff-line ${sign === "+" ? "came" : sign === "-" ? "went" : ""}">${sign} ${text}\n</span>`)}</pre>
    </section>`;
}

function toLines(value) {
  return value === null || value === undefined ? [] : JSON.stringify(value, null, 2).split("\n");
}

/** Returns [{ sign, text }] by the longest common subsequence; of very long texts all lines before, then all after. */
export function compareLines(before, after) {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return [...before.map((text) => ({ sign: "-", text })), ...after.map((text) => ({ sign: "+", text }))];
  }
  const common = commonLengths(before, after);
  const lines = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push({ sign: " ", text: before[i] });
      i += 1;
      j += 1;
    } else if (j >= after.length || (i < before.length && common[i + 1][j] >= common[i][j + 1])) {
      lines.push({ sign: "-", text: before[i] });
      i += 1;
    } else {
      lines.push({ sign: "+", text: after[j] });
      j += 1;
    }
  }
  return lines;
}

function commonLengths(before, after) {
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  return common;
}

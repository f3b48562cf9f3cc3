// Differences of two texts by lines: Myers' algorithm, "An O(N·D) Difference Algorithm" (1986), with a bound.
const MAX_EDITS = 800;

/** Returns [{ kind: "same" | "old" | "new", text, before, after }] with line numbers from 1; null if they differ too much. */
export function diffLines(oldText, newText) {
  const before = toLines(oldText);
  const after = toLines(newText);
  const start = commonStart(before, after);
  const end = commonEnd(before, after, start);
  const path = shortestPath(before.slice(start, before.length - end), after.slice(start, after.length - end));
  if (!path) return null;
  const kinds = [...Array(start).fill("same"), ...path, ...Array(end).fill("same")];
  return number(kinds, before, after);
}

function toLines(text) {
  return text === "" ? [] : text.split("\n");
}

function commonStart(before, after) {
  let count = 0;
  while (count < before.length && count < after.length && before[count] === after[count]) count += 1;
  return count;
}

function commonEnd(before, after, start) {
  const most = Math.min(before.length, after.length) - start;
  let count = 0;
  while (count < most && before.at(-1 - count) === after.at(-1 - count)) count += 1;
  return count;
}

/** Returns the kinds of the lines of the shortest edit, or null above the bound. */
function shortestPath(before, after) {
  const most = Math.min(before.length + after.length, MAX_EDITS);
  const furthest = new Map([[1, 0]]);
  const rounds = [];
  for (let edits = 0; edits <= most; edits += 1) {
    rounds.push(new Map(furthest));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = diagonal === -edits || (diagonal !== edits && furthest.get(diagonal - 1) < furthest.get(diagonal + 1));
      let x = down ? furthest.get(diagonal + 1) : furthest.get(diagonal - 1) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      furthest.set(diagonal, x);
      if (x >= before.length && x - diagonal >= after.length) return walkBack(rounds, before.length, after.length);
    }
  }
  return null;
}

function walkBack(rounds, x, y) {
  const kinds = [];
  for (let edits = rounds.length - 1; edits >= 0; edits -= 1) {
    const furthest = rounds[edits];
    const diagonal = x - y;
    const down = diagonal === -edits || (diagonal !== edits && furthest.get(diagonal - 1) < furthest.get(diagonal + 1));
    const startX = furthest.get(down ? diagonal + 1 : diagonal - 1);
    const startY = startX - (down ? diagonal + 1 : diagonal - 1);
    for (; x > startX && y > startY; x -= 1, y -= 1) kinds.push("same");
    if (edits > 0) kinds.push(down ? "new" : "old");
    x = startX;
    y = startY;
  }
  return kinds.reverse();
}

function number(kinds, before, after) {
  let left = 0;
  let right = 0;
  return kinds.map((kind) => {
    if (kind !== "new") left += 1;
    if (kind !== "old") right += 1;
    return { kind, text: kind === "new" ? after[right - 1] : before[left - 1], before: kind === "new" ? null : left, after: kind === "old" ? null : right };
  });
}

/** Leaves out long runs of equal lines: { kind: "gap", count } stands for them. */
export function foldSame(lines, context = 3) {
  const shown = [];
  for (let index = 0; index < lines.length; index += 1) {
    let end = index;
    while (end < lines.length && lines[end].kind === "same") end += 1;
    const first = index === 0 ? 0 : context;
    const last = end === lines.length ? 0 : context;
    if (end - index > first + last + 1) {
      shown.push(...lines.slice(index, index + first), { kind: "gap", count: end - index - first - last }, ...lines.slice(end - last, end));
    } else shown.push(...lines.slice(index, end));
    index = end;
    if (index < lines.length) shown.push(lines[index]);
  }
  return shown;
}

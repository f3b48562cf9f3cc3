// Whether a text is well-formed XML, with the line of its fault. The browser's own parser answers a fault by a page with
// inline styles, which the Content Security Policy forbids.
const NAME = "[A-Za-z_][\\w.:-]*";
const ATTRIBUTE = new RegExp(`\\s+${NAME}\\s*=\\s*(?:"[^"<]*"|'[^'<]*')`, "gy");
const START = new RegExp(`<(${NAME})`, "y");
const END = new RegExp(`</(${NAME})\\s*>`, "y");
const ENTITY = /^&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});/;

/** Returns { message, line } of the first fault, null for none. A DOCTYPE is a fault: S3 refuses it. */
export function findFault(source) {
  const fault = (at, message) => ({ message, line: source.slice(0, at).split("\n").length });
  const open = [];
  let at = 0;
  let roots = 0;
  while (at < source.length) {
    if (source[at] !== "<") {
      const end = source.indexOf("<", at);
      const text = source.slice(at, end === -1 ? undefined : end);
      const ampersand = [...text.matchAll(/&/g)].find((found) => !ENTITY.test(text.slice(found.index)));
      if (ampersand) return fault(at + ampersand.index, "Write &amp; for the sign &.");
      if (!open.length && text.trim()) return fault(at + text.search(/\S/), "Text stands outside of all elements.");
      at += text.length;
      continue;
    }
    const [next, problem] = readMarkup(source, at, open);
    if (problem) return fault(at, problem);
    if (next.root) roots += 1;
    if (roots > 1) return fault(at, "There is a second root element.");
    at = next.end;
  }
  if (open.length) return fault(source.length, `<${open.at(-1)}> is not closed.`);
  return roots ? null : { message: "Write XML here.", line: null };
}

/** Reads what begins with "<": [{ end, root }] or [null, problem]. */
function readMarkup(source, at, open) {
  for (const [begin, finish] of [["<!--", "-->"], ["<?", "?>"], ["<![CDATA[", "]]>"]]) {
    if (!source.startsWith(begin, at)) continue;
    const end = source.indexOf(finish, at + begin.length);
    return end === -1 ? [null, `${begin} is not closed.`] : [{ end: end + finish.length }];
  }
  if (source.startsWith("<!", at)) return [null, "A DOCTYPE is not allowed."];
  END.lastIndex = at;
  const closing = END.exec(source);
  if (closing) {
    const name = open.pop();
    return name === closing[1] ? [{ end: END.lastIndex }] : [null, name ? `</${closing[1]}> closes <${name}>.` : `</${closing[1]}> closes nothing.`];
  }
  START.lastIndex = at;
  const starting = START.exec(source);
  if (!starting) return [null, "Write &lt; for the sign <, or name an element."];
  let end = START.lastIndex;
  ATTRIBUTE.lastIndex = end;
  while (ATTRIBUTE.exec(source)) end = ATTRIBUTE.lastIndex;
  const tail = /^\s*(\/?)>/.exec(source.slice(end, end + 1000));
  if (!tail) return [null, `<${starting[1]} is not closed by >.`];
  const root = open.length === 0;
  if (!tail[1]) open.push(starting[1]);
  return [{ end: end + tail[0].length, root }];
}

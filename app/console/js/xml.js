// XML of S3: read into elements, written from arrays. Values are always escaped.

/** Parses a document and returns its root. Throws SyntaxError. */
export function parseXml(text) {
  // Chromium's own page for an error has a style attribute, which the Content Security Policy reports
  if (!text.trimStart().startsWith("<")) throw new SyntaxError("the answer is no XML");
  const parsed = new DOMParser().parseFromString(text, "application/xml");
  if (parsed.querySelector("parsererror")) throw new SyntaxError("the answer is no XML");
  return parsed.documentElement;
}

/** Returns the children of an element that have a local name. */
export function childrenOf(element, name) {
  return [...element.children].filter((child) => child.localName === name);
}

/** Returns the first child with a name, or null. */
export function childOf(element, name) {
  // A listing of 1,000 keys has 7,000 children: no array for each of them
  for (let child = element.firstElementChild; child; child = child.nextElementSibling) if (child.localName === name) return child;
  return null;
}

/** Returns the text below a path of names: textOf(root, "Owner", "ID"). Null when an element is missing. */
export function textOf(element, ...path) {
  const found = path.reduce((one, name) => one && childOf(one, name), element);
  return found ? found.textContent : null;
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;" };

/** Escapes text for XML. */
export function escapeXml(text) {
  return String(text).replace(/[&<>"\r]/g, (char) => ENTITIES[char]);
}

/** Writes an element: toXml("Tag", [["Key", "a"], ["Value", "b"]]). Content is text, or pairs of name and content; null is left out. */
export function toXml(name, content, attributes = "") {
  if (content === null || content === undefined) return "";
  const inner = Array.isArray(content) ? content.map(([child, value, own]) => toXml(child, value, own)).join("") : escapeXml(content);
  return `<${name}${attributes && ` ${attributes}`}>${inner}</${name}>`;
}

/** The namespace of S3's documents, as an attribute. */
export const S3_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';

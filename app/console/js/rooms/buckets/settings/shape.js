// Documents of S3 as plain values, by a description of their elements: read, written, and compared.
import { childOf, childrenOf, parseXml, S3_NAMESPACE, toXml } from "../../../xml.js";
import { findFault } from "./well-formed.js";

/** A text; null when the element is missing. */
export const text = (name) => ({ name, read: (parent) => childOf(parent, name)?.textContent ?? null, write: (value) => [[name, value]] });

/** A text that is written only if there is any. */
export const optional = (name) => ({ ...text(name), write: (value) => [[name, value === "" ? null : value]] });

/** A whole number as the text of its input; "" when the element is missing. */
export const number = (name) => ({ name, read: (parent) => childOf(parent, name)?.textContent.trim() ?? "", write: (value) => [[name, value === "" ? null : value]] });

/** true or false; null when the element is missing. */
export const flag = (name) => ({
  name,
  read: (parent) => (childOf(parent, name) ? childOf(parent, name).textContent.trim() === "true" : null),
  write: (value) => [[name, value === null || value === undefined ? null : String(value)]],
});

/** Texts of elements that repeat. */
export const texts = (name) => ({ name, read: (parent) => childrenOf(parent, name).map((one) => one.textContent), write: (values) => values.map((value) => [name, value]) });

/** An element with elements inside; null when it is missing. */
export const child = (name, fields) => ({
  name,
  read: (parent) => (childOf(parent, name) ? readFields(childOf(parent, name), fields) : null),
  write: (value) => [[name, value === null || value === undefined ? null : writeFields(value, fields)]],
});

/** Elements that repeat, with elements inside. */
export const list = (name, fields) => ({
  name,
  read: (parent) => childrenOf(parent, name).map((one) => readFields(one, fields)),
  write: (values) => values.map((value) => [name, writeFields(value, fields)]),
});

/** Reads the fields of an element: { key: field }. */
export function readFields(element, fields) {
  return Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.read(element)]));
}

/** Returns the pairs of name and content of a value, in the order of the fields. */
export function writeFields(value, fields) {
  return Object.entries(fields).flatMap(([key, field]) => field.write(value[key]));
}

/** Returns { read(root), write(value) } of a document. */
export function documentOf(root, fields) {
  return { read: (element) => readFields(element, fields), write: (value) => toXml(root, writeFields(value, fields), S3_NAMESPACE) };
}

/**
 * Returns whether two documents say the same: names, attributes and texts, whatever the order of siblings. A form that
 * would write another document than it has read must not be shown.
 */
export function isSameDocument(one, other) {
  return JSON.stringify(canonical(parseXml(one))) === JSON.stringify(canonical(parseXml(other)));
}

function canonical(element) {
  const attributes = [...element.attributes].filter(({ name }) => !name.startsWith("xmlns")).map(({ localName, value }) => [localName, value]).sort();
  const children = [...element.children].map(canonical).map((child) => JSON.stringify(child)).sort();
  return [element.localName, attributes, children.length ? children : element.textContent];
}

/** Returns a document with a line for each element, for people. */
export function indent(xml) {
  const lines = [];
  const walk = (element, depth) => {
    const pad = "  ".repeat(depth);
    const head = new XMLSerializer().serializeToString(element.cloneNode(false)).replace(/\/>$|><\/[^>]+>$/, "").replace(/>$/, "");
    const shown = depth === 0 ? head : head.replace(/ xmlns="[^"]*"/, "");
    if (element.children.length === 0) {
      const body = element.textContent ? `>${escapeText(element.textContent)}</${element.nodeName}>` : "/>";
      lines.push(`${pad}${shown}${body}`);
      return;
    }
    lines.push(`${pad}${shown}>`);
    [...element.children].forEach((one) => walk(one, depth + 1));
    lines.push(`${pad}</${element.nodeName}>`);
  };
  walk(parseXml(xml), 0);
  return `${lines.join("\n")}\n`;
}

function escapeText(value) {
  const holder = document.implementation.createDocument(null, "x").documentElement;
  holder.textContent = value;
  return new XMLSerializer().serializeToString(holder).replace(/^<x>|<\/x>$/g, "");
}

/** Returns what keeps a text from being a document of a name, with its line; "" for nothing. */
export function xmlProblem(source, root) {
  const fault = findFault(source);
  if (fault) return { message: `${fault.line ? `Line ${fault.line}: ` : ""}${fault.message}`, line: fault.line };
  const parsed = new DOMParser().parseFromString(source, "application/xml");
  if (parsed.querySelector("parsererror")) return { message: "This is no XML.", line: null };
  if (parsed.documentElement.localName !== root) return { message: `The document must be <${root}>, and is <${parsed.documentElement.localName}>.`, line: null };
  return null;
}

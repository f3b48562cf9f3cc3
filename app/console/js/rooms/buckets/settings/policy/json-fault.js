// Where a text stops being JSON. Browsers name no position for most faults, and pass over keys that stand twice.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const MAX_DEPTH = 64;

/** Returns { message, line } of the first fault of a text; null for JSON. */
export function findJsonFault(text) {
  const reader = { text, at: 0 };
  try {
    skip(reader);
    readValue(reader, 0);
    skip(reader);
    if (reader.at < text.length) fail(reader, "Something stands behind the end.");
    return null;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    const before = text.slice(0, fault.at).split("\n");
    return { line: before.length, message: `Line ${before.length}, column ${before.at(-1).length + 1}: ${fault.message}` };
  }
}

class Fault extends Error {
  constructor(at, message) {
    super(message);
    this.at = at;
  }
}

function fail(reader, message) {
  throw new Fault(reader.at, message);
}

function skip(reader) {
  while (/[ \t\r\n]/.test(reader.text[reader.at] ?? "")) reader.at += 1;
}

function take(reader, pattern) {
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.text);
  if (found) reader.at = pattern.lastIndex;
  return found?.[0];
}

function readValue(reader, depth) {
  if (depth > MAX_DEPTH) fail(reader, "This is nested too deeply.");
  const sign = reader.text[reader.at];
  if (sign === "{") readObject(reader, depth);
  else if (sign === "[") readList(reader, "]", () => readValue(reader, depth + 1));
  else if (sign === '"') readString(reader);
  else if (take(reader, LITERAL) === undefined) fail(reader, sign === undefined ? "The text ends too early." : "A value is expected here, such as “\"text\"”, a list or an object.");
}

function readString(reader) {
  const found = take(reader, STRING);
  if (found === undefined) fail(reader, "This text has no end in its line, or a backslash that means nothing.");
  return found;
}

function readObject(reader, depth) {
  const keys = new Set();
  readList(reader, "}", () => {
    if (reader.text[reader.at] !== '"') fail(reader, "A name in double quotes is expected here.");
    const at = reader.at;
    const key = JSON.parse(readString(reader));
    if (keys.has(key)) throw new Fault(at, `“${key}” stands here twice.`);
    keys.add(key);
    skip(reader);
    if (reader.text[reader.at] !== ":") fail(reader, "A colon is expected here.");
    reader.at += 1;
    skip(reader);
    readValue(reader, depth + 1);
  });
}

function readList(reader, end, readOne) {
  reader.at += 1;
  skip(reader);
  if (reader.text[reader.at] === end) {
    reader.at += 1;
    return;
  }
  for (;;) {
    readOne();
    skip(reader);
    const sign = reader.text[reader.at];
    if (sign !== "," && sign !== end) fail(reader, sign === undefined ? "The text ends too early." : `A comma or ${end} is expected here.`);
    reader.at += 1;
    if (sign === end) return;
    skip(reader);
    if (reader.text[reader.at] === end) fail(reader, "There is a comma too much before this.");
  }
}

// Sizes as people type them: "500 GiB", "2TB", "1048576".
const FACTORS = { "": 1, b: 1, k: 1e3, kb: 1e3, kib: 1024, m: 1e6, mb: 1e6, mib: 1024 ** 2, g: 1e9, gb: 1e9, gib: 1024 ** 3, t: 1e12, tb: 1e12, tib: 1024 ** 4, p: 1e15, pb: 1e15, pib: 1024 ** 5 };
const UNITS = [["PiB", 1024 ** 5], ["TiB", 1024 ** 4], ["GiB", 1024 ** 3], ["MiB", 1024 ** 2], ["KiB", 1024]];

/** Parses a size in bytes. Returns { value, problem }; the value of an empty text is null. */
export function parseSize(text) {
  const trimmed = text.trim();
  if (!trimmed) return { value: null, problem: "" };
  const found = /^(\d+(?:[.,]\d+)?)\s*([a-z]*)$/i.exec(trimmed);
  const factor = found && FACTORS[found[2].toLowerCase()];
  if (!factor) return { value: null, problem: "Write a number with a unit, such as 500 GiB." };
  const value = Math.round(Number(found[1].replace(",", ".")) * factor);
  return Number.isSafeInteger(value) ? { value, problem: "" } : { value: null, problem: "That is more than can be counted." };
}

/** Parses a whole number. Returns { value, problem }; the value of an empty text is null. */
export function parseCount(text) {
  const digits = text.replace(/[\s_.,']/g, "");
  if (!digits) return { value: null, problem: "" };
  const fine = /^\d+$/.test(digits) && Number.isSafeInteger(Number(digits));
  return fine ? { value: Number(digits), problem: "" } : { value: null, problem: "Write a whole number." };
}

/** Returns a size as it can be typed, without loss: 1073741824 → "1 GiB". */
export function renderSize(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const [unit, factor] = UNITS.find(([, one]) => bytes >= one && bytes % one === 0) ?? ["", 1];
  return `${bytes / factor}${unit && ` ${unit}`}`;
}

/** Returns a whole number as it can be typed. */
export function renderWhole(count) {
  return count === null || count === undefined ? "" : String(count);
}

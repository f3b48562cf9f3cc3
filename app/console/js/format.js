// Numbers, sizes and times for people. Exact values stand in `title`, see components/values.js.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Returns a size in bytes with three digits: 1536 → "1.50 KiB". */
export function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return `${value} B`;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

const whole = new Intl.NumberFormat(undefined);
const three = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

/** Returns a whole number with its thousands apart. */
export function formatCount(count) {
  return count === null || count === undefined ? "–" : whole.format(count);
}

/** Returns a number with three digits, for rates and latencies. */
export function formatNumber(value) {
  return value === null || value === undefined ? "–" : three.format(value);
}

/** Returns a span in seconds: 0.0021 → "2.1 ms", 95 → "1 min 35 s". */
export function formatSeconds(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.0001 && seconds > 0) return `${formatNumber(seconds * 1e6)} µs`;
  if (seconds < 1) return `${formatNumber(seconds * 1000)} ms`;
  if (seconds < 60) return `${formatNumber(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Returns a moment (Date, or milliseconds since the epoch) in the local zone. */
export function formatTime(moment) {
  return local.format(new Date(moment));
}

/** Returns a moment in UTC, as logs have it. */
export function formatUtc(moment) {
  return new Date(moment).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

/** Returns `count` with its noun: formatPlural(1, "object") → "1 object". */
export function formatPlural(count, noun, plural = `${noun}s`) {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

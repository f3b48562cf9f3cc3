// Pages of a folder's listing, loaded as they are needed and kept as plain values.
import { callS3Xml } from "../../s3.js";
import { childrenOf, textOf } from "../../xml.js";
import { useCallback, useEffect, useRef, useState } from "../../ui.js";

const PAGE_KEYS = 1000;
/** Rows that a tab keeps; beyond them one goes on by a longer prefix. */
export const MAX_ROWS = 100_000;

/** Returns one page: { rows, next }. A row is a folder { key, folder: true } or an object { key, size, modified, etag, storageClass }. */
export async function listPage({ bucket, prefix, delimiter = "/", token, signal, maxKeys = PAGE_KEYS }) {
  const query = { "list-type": "2", "encoding-type": "url", prefix, "max-keys": String(maxKeys) };
  if (delimiter) query.delimiter = delimiter;
  if (token) query["continuation-token"] = token;
  const root = await callS3Xml({ bucket, query, signal });
  const folders = childrenOf(root, "CommonPrefixes").map((one) => ({ key: decode(textOf(one, "Prefix")), folder: true }));
  const objects = childrenOf(root, "Contents").map(readObject).filter((one) => one.key !== prefix || !delimiter);
  const rows = folders.length && objects.length ? [...folders, ...objects].sort(byKey) : [...folders, ...objects];
  return { rows, next: textOf(root, "NextContinuationToken") };
}

function readObject(one) {
  return {
    key: decode(textOf(one, "Key")),
    size: Number(textOf(one, "Size")),
    modified: Date.parse(textOf(one, "LastModified")),
    etag: textOf(one, "ETag"),
    storageClass: textOf(one, "StorageClass") ?? "STANDARD",
  };
}

function decode(text) {
  return decodeURIComponent(text.replaceAll("+", "%20"));
}

/** Compares rows as S3 orders keys: by UTF-8, which UTF-16 differs from beyond U+FFFF only. */
export function byKey(one, other) {
  return one.key < other.key ? -1 : one.key > other.key ? 1 : 0;
}

const NOTHING = { of: null, rows: [], next: null, loading: true, error: null, complete: false };

/**
 * Loads a folder page by page. Returns { rows, complete, full, loading, error, more, reload, change }.
 * `change(update)` replaces the rows by update(rows) after something was uploaded or removed.
 */
export function useListing(bucket, prefix) {
  const of = `${bucket}/${prefix}`;
  const [stored, setState] = useState(NOTHING);
  const state = stored.of === of ? stored : NOTHING; // never the rows of the folder before
  const running = useRef(null);
  const latest = useRef(state);
  latest.current = state;
  const load = useCallback(async (token, keep) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setState((before) => ({ ...before, of, loading: true, error: null }));
    try {
      const { rows, next } = await listPage({ bucket, prefix, token, signal: abort.signal });
      if (abort.signal.aborted) return;
      setState((before) => ({ of, rows: keep ? before.rows.concat(rows) : rows, next, loading: false, error: null, complete: !next }));
    } catch (error) {
      if (!abort.signal.aborted) setState((before) => ({ ...before, loading: false, error }));
    } finally {
      if (running.current === abort) running.current = null;
    }
  }, [bucket, prefix]);
  useEffect(() => {
    setState(NOTHING);
    load(null, false);
    return () => running.current?.abort();
  }, [load]);
  const more = useCallback(() => {
    const { next, error, rows } = latest.current;
    if (next && !error && !running.current && rows.length < MAX_ROWS) load(next, true);
  }, [load]);
  const retry = useCallback(() => load(latest.current.next, latest.current.rows.length > 0 && Boolean(latest.current.next)), [load]);
  const reload = useCallback(() => load(null, false), [load]);
  const change = useCallback((update) => setState((before) => ({ ...before, rows: update(before.rows) })), []);
  return { ...state, full: state.rows.length >= MAX_ROWS && !state.complete, more, retry, reload, change };
}

/** Returns rows with one that was written now, where its place is; unchanged beyond what is loaded. */
export function withRow(rows, row, complete) {
  let low = 0;
  for (let high = rows.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (byKey(rows[middle], row) < 0) low = middle + 1;
    else high = middle;
  }
  if (low === rows.length && !complete) return rows;
  const same = rows[low]?.key === row.key;
  if (same && row.folder) return rows;
  return [...rows.slice(0, low), row, ...rows.slice(low + (same ? 1 : 0))];
}

/** Returns the part of a key that is shown below a prefix, whose last name may be unfinished. */
export function nameBelow(prefix, key) {
  return key.slice(prefix.lastIndexOf("/") + 1) || key;
}

/** Filters and sorts what is loaded. `order`: { by: "name" | "size" | "modified", descending }. */
export function arrange(rows, prefix, filter, order) {
  const wanted = filter.toLowerCase();
  const found = wanted ? rows.filter((row) => nameBelow(prefix, row.key).toLowerCase().includes(wanted)) : rows;
  if (order.by === "name") return order.descending ? [...found].reverse() : found;
  const factor = order.descending ? -1 : 1;
  const value = (row) => (row.folder ? -1 : row[order.by]);
  return [...found].sort((one, other) => factor * (value(one) - value(other)) || byKey(one, other));
}

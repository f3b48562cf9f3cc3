// Which rows are selected: a set of keys, with the range that Shift makes.
import { useCallback, useMemo, useState } from "../../ui.js";

/** Returns { keys, has, toggle, range, all, clear, only, prune } for a folder; another folder begins with none. */
export function useSelection() {
  const [keys, setKeys] = useState(new Set());
  const clear = useCallback(() => setKeys((before) => (before.size ? new Set() : before)), []);
  const only = useCallback((key) => setKeys(new Set([key])), []);
  const all = useCallback((rows) => setKeys(new Set(rows.map((row) => row.key))), []);
  const toggle = useCallback((key) => setKeys((before) => {
    const after = new Set(before);
    if (!after.delete(key)) after.add(key);
    return after;
  }), []);
  const range = useCallback((rows, from, to) => setKeys((before) => {
    const after = new Set(before);
    for (let index = Math.min(from, to); index <= Math.max(from, to); index += 1) after.add(rows[index].key);
    return after;
  }), []);
  return useMemo(() => ({ keys, has: (key) => keys.has(key), toggle, range, all, clear, only }), [keys]);
}

// A long work of a dialog: progress, cancel, and the errors of its parts.
import { useEffect, useRef, useState } from "../../ui.js";

/** Returns { state: "idle" | "running" | "done", done, total, errors, error, run(work), cancel }. `work(signal, report)`. */
export function useWork() {
  const [progress, setProgress] = useState({ state: "idle", done: 0, total: 0, errors: [], error: null });
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const run = async (work) => {
    abort.current = new AbortController();
    const report = (change) => setProgress((before) => ({ ...before, ...change }));
    setProgress({ state: "running", done: 0, total: 0, errors: [], error: null });
    try {
      const result = await work(abort.current.signal, report);
      report({ state: "done" });
      return result;
    } catch (error) {
      report({ state: "done", error: error.name === "AbortError" ? new Error("Cancelled. What was done stays done.") : error });
      return null;
    }
  };
  return { ...progress, run, cancel: () => abort.current?.abort() };
}

/** Runs `task` for each of `list`, `width` at once; stops when the signal ends it. */
export async function forEachOf(list, width, signal, task) {
  let next = 0;
  const work = async () => {
    while (next < list.length) {
      signal.throwIfAborted();
      next += 1;
      await task(list[next - 1]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, list.length) }, work));
}

// Data of a page: loaded when it opens, kept while it is loaded again, so that nothing flashes.
import { useCallback, useEffect, useRef, useState } from "./ui.js";

/**
 * Loads data by `load(abortSignal)` whenever `inputs` change. Returns { data, error, loading, reload }.
 * `data` is that of the inputs before until the new one is here; `error` is null after a success.
 */
export function useResource(load, inputs) {
  const [state, setState] = useState({ data: undefined, error: null, loading: true });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    latest.current(abort.signal).then(
      (data) => abort.signal.aborted || setState({ data, error: null, loading: false }),
      (error) => abort.signal.aborted || setState((before) => ({ ...before, error, loading: false })),
    );
    return () => abort.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}

/**
 * Runs an action of a button. Returns [run, { busy, error, clear }]; a second click while it runs does nothing.
 */
export function useAction(action) {
  const [state, setState] = useState({ busy: false, error: null });
  const running = useRef(false);
  const run = async (...parameters) => {
    if (running.current) return undefined;
    running.current = true;
    setState({ busy: true, error: null });
    try {
      const result = await action(...parameters);
      setState({ busy: false, error: null });
      return result;
    } catch (error) {
      setState({ busy: false, error: error.name === "AbortError" ? null : error });
      return undefined;
    } finally {
      running.current = false;
    }
  };
  return [run, { ...state, clear: () => setState({ busy: false, error: null }) }];
}

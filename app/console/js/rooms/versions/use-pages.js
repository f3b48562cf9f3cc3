// A list that grows by pages, loaded as its end comes near.
import { useCallback, useEffect, useRef, useState } from "../../ui.js";

const EMPTY = { items: [], next: undefined, error: null, loading: true };

/**
 * Loads pages by `load(marker, abortSignal)`, which resolves to { items, next }. Returns { items, done, error, loading,
 * more, reload }; `reload` keeps the items until the first page is here again.
 */
export function usePages(load, inputs) {
  const [state, setState] = useState(EMPTY);
  const [round, setRound] = useState(0);
  const run = useRef({});
  const fetchPage = useCallback((current, before, marker) => {
    current.busy = true;
    setState((shown) => ({ ...shown, loading: true, error: null }));
    load(marker, current.abort.signal).then(
      ({ items, next }) => {
        current.busy = false;
        if (!current.abort.signal.aborted) setState({ items: [...before, ...items], next, error: null, loading: false });
      },
      (error) => {
        current.busy = false;
        if (!current.abort.signal.aborted) setState((shown) => ({ ...shown, error, loading: false }));
      },
    );
  }, inputs);
  useEffect(() => {
    const current = { abort: new AbortController(), busy: false };
    run.current = current;
    fetchPage(current, [], null);
    return () => current.abort.abort();
  }, [...inputs, round]);
  const more = () => {
    if (!run.current.busy && state.next) fetchPage(run.current, state.items, state.next);
  };
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { items: state.items, done: state.next === null, error: state.error, loading: state.loading, more, reload };
}

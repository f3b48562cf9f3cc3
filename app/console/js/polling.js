// Data that a page asks for again and again: it rests while the tab is hidden.
import { useEffect } from "./ui.js";
import { useResource } from "./resource.js";

/** Loads data by `load(abortSignal)` now and every `seconds` while the tab is visible. Returns what `useResource` does. */
export function usePolled(load, seconds, inputs = []) {
  const resource = useResource(load, inputs);
  const { loading, reload } = resource;
  useEffect(() => {
    if (loading) return undefined;
    const again = () => document.hidden || reload();
    const timer = setTimeout(again, seconds * 1000);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [loading, seconds]);
  return resource;
}

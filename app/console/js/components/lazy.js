// Components whose modules are loaded when they are first shown.
import { html, useEffect, useRef, useState } from "../ui.js";
import { useResource } from "../resource.js";
import { ErrorNote } from "./error-note.js";

const MISSING = new Error("This part cannot be loaded: load the page again.");

/** Returns a component for one that `load()` resolves to: lazy(async () => (await import(…)).Name). */
export function lazy(load) {
  let known = null;
  return function Lazy(props) {
    const [, setLoaded] = useState(known !== null);
    const [error, setError] = useState(null);
    useEffect(() => {
      if (known) return;
      load().then((component) => {
        known = component;
        setLoaded(true);
      }, setError);
    }, []);
    if (error) return html`<${ErrorNote} error=${MISSING} />`;
    return known && html`<${known} ...${props} />`;
  };
}

/** Shows the component that `load()` resolves to, for an item `name`; the one before stays as it was until it is here. */
export function Loaded({ load, ...props }) {
  const { data, error } = useResource(async () => ({ load, View: await load() }), [load]);
  const last = useRef(null);
  if (error) return html`<${ErrorNote} error=${MISSING} />`;
  if (data?.load === load) last.current = html`<${data.View} key=${props.name} ...${props} />`;
  return last.current;
}

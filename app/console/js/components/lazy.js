// Components whose modules are loaded when they are first shown.
import { html, useEffect, useState } from "../ui.js";
import { ErrorNote } from "./error-note.js";

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
    if (error) return html`<${ErrorNote} error=${new Error("This part cannot be loaded: load the page again.")} />`;
    return known && html`<${known} ...${props} />`;
  };
}

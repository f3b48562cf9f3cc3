// What every component imports: Preact with its hooks, the template tag `html`, and signals.
import { Component, Fragment, h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";
import { useLayoutEffect, useState } from "../vendor/preact-hooks.js";
import { effect } from "../vendor/signals-core.js";

export { Component, Fragment, h, render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals-core.js";

/** Makes elements from a template: html`<p class=${name}>${text}</p>`. Values are text or attributes, never HTML. */
export const html = htm.bind(h);

/** Returns a signal's value, and renders the component again when it changes. */
export function useSignal(signal) {
  const [value, setValue] = useState(signal.peek());
  useLayoutEffect(() => effect(() => setValue(() => signal.value)), [signal]);
  return value;
}

/** Joins the class names that are given, and leaves out false ones. */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

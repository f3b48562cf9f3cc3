// Filters of a page, which its address keeps.
import { useEffect, useRef, useState } from "../../ui.js";
import { navigate, pathTo } from "../../router.js";

const TYPING_MS = 300;

/**
 * Returns [values, set]: the filters of the address by `names`, and a function that changes one. What is typed is in the
 * address a moment later, so that a list is not asked for at every letter.
 */
export function useFilters(tab, names, query) {
  const applied = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]));
  const [values, setValues] = useState(applied);
  const timer = useRef(0);
  const signature = JSON.stringify(applied);
  useFilterKey();
  useEffect(() => setValues(applied), [signature]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const set = (name, value) => {
    const next = { ...values, [name]: value };
    setValues(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => navigate(pathTo(["operations", tab], next), { replace: true }), TYPING_MS);
  };
  return [values, set, applied];
}

/** Makes the key `/` go to the first filter of the page. */
function useFilterKey() {
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea, select, dialog")) return;
      document.querySelector("[data-filter]")?.focus();
      event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Returns the filters that are set. */
export function usedOf(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

// Pages are paths below /console. A key or prefix is a query parameter: a path would lose "//", "." and "..".
import { signal } from "./ui.js";

const ROOT = "/console/";

/** The page that is shown: `segments` of the path below /console, and `query`, a URLSearchParams. */
export const page = signal(readLocation());

/** Asks before a page with unsaved changes is left: a function that returns a question, or null. */
export const leaveQuestion = signal(null);

function readLocation() {
  const path = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) : "";
  const segments = path.split("/").filter(Boolean).map(decodeSegment);
  return { segments, query: new URLSearchParams(location.search), href: location.pathname + location.search };
}

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Returns the path of a page: pathTo(["buckets", name], { prefix }). Empty query values are left out. */
export function pathTo(segments, query = {}) {
  const used = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = used.length ? `?${new URLSearchParams(used)}` : "";
  return ROOT + segments.map(encodeURIComponent).join("/") + search;
}

/** Shows another page. `replace` leaves no entry in the history, for filters and the like. */
export function navigate(href, { replace = false } = {}) {
  if (!replace && !mayLeave()) return;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  const before = page.peek();
  page.value = readLocation();
  if (!replace && before.href !== page.peek().href) window.scrollTo(0, 0);
}

function mayLeave() {
  const question = leaveQuestion.peek()?.();
  if (question && !window.confirm(question)) return false;
  leaveQuestion.value = null;
  return true;
}

/** Makes links and the browser's buttons work without loading the document again. */
export function startRouter() {
  window.addEventListener("popstate", () => {
    page.value = readLocation();
  });
  window.addEventListener("beforeunload", (event) => {
    if (leaveQuestion.peek()?.()) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(ROOT) || url.pathname.startsWith(`${ROOT}static/`)) return;
    event.preventDefault();
    navigate(url.pathname + url.search);
  });
}

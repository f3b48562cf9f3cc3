// Keeps the focus in the page: when what has it is removed or disabled, something near it, or what had it before, gets it.
const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
const MAX_KEPT = 32;

/** What had the focus, the latest last: { chain }, the element with its ancestors, and what stood before and after each. */
let trail = [];

/** Begins to watch the document; once, at the start. */
export function startFocusKeeper() {
  document.addEventListener("focusin", ({ target }) => remember(target));
  document.addEventListener("pointerdown", () => setTimeout(forgetWhereNobodyIs));
  const attributeFilter = ["disabled", "hidden", "open", "inert"];
  new MutationObserver(keep).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter });
}

function remember(element) {
  const chain = [];
  for (let one = element; one && one !== document.body; one = one.parentElement) {
    chain.push({ element: one, next: one.nextElementSibling, previous: one.previousElementSibling });
  }
  trail = [...trail.slice(1 - MAX_KEPT), { chain }];
}

/** A click beside all controls takes the focus away, as it should. */
function forgetWhereNobodyIs() {
  if (document.activeElement === document.body) trail = [];
}

function keep() {
  const last = trail.at(-1)?.chain[0].element;
  const active = document.activeElement;
  if (!last || (active !== last && active !== document.body && active !== null) || isUsable(last)) return;
  findPlace()?.focus({ preventScroll: true });
}

function findPlace() {
  while (trail.length) {
    const { chain } = trail.pop();
    if (isUsable(chain[0].element)) return chain[0].element;
    const near = findNear(chain);
    if (near) return near;
  }
  return topDialog() ?? document.querySelector("main h1[tabindex]") ?? document.querySelector("main");
}

/** Returns a control near one that went: behind it, before it, or in what is around it. Null when a dialog or page went. */
function findNear(chain) {
  const level = chain.findIndex(({ element }, index) => index > 0 && isShown(element));
  if (level < 0) return null;
  const around = chain[level].element;
  if (around.localName === "dialog") return around;
  if (chain.slice(0, level).some(({ element }) => element.localName === "dialog")) return null;
  const { next, previous } = chain[level - 1];
  return controlsOf(next)[0] ?? controlsOf(previous).at(-1) ?? (around.closest("main, nav") === around ? null : controlsOf(around)[0]) ?? null;
}

function controlsOf(element) {
  if (!element || !isShown(element)) return [];
  return [element, ...element.querySelectorAll(CONTROLS)].filter((one) => one.matches(CONTROLS) && one.tabIndex >= 0 && isUsable(one));
}

function isUsable(element) {
  return isShown(element) && !element.disabled && !element.closest("[inert]");
}

/** Under a modal dialog nothing else can have the focus. */
function isShown(element) {
  const dialog = topDialog();
  return element.isConnected && element.checkVisibility({ visibilityProperty: true }) && (!dialog || dialog.contains(element));
}

function topDialog() {
  return [...document.querySelectorAll("dialog[open]")].at(-1) ?? null;
}

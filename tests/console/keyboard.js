// Runs in each page before its scripts: knows what can be clicked, and notes where the focus goes and how that looks.
(() => {
  const PRESSES = new Set(["click", "mousedown", "pointerdown", "mouseup", "pointerup", "dblclick"]);
  const CONTROLS = "a[href], button, input, select, textarea, summary, iframe, [tabindex]";
  const WITHIN = "[role=grid], [role=menu], [role=listbox], [role=tablist]"; // arrows move in these
  const pressed = new WeakMap();
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const count = (target, type, step) => {
    if (PRESSES.has(type) && target instanceof Element) pressed.set(target, (pressed.get(target) ?? 0) + step);
  };
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    count(this, type, 1);
    return addEventListener.call(this, type, ...rest);
  };
  EventTarget.prototype.removeEventListener = function (type, ...rest) {
    count(this, type, -1);
    return removeEventListener.call(this, type, ...rest);
  };

  let stops = []; // { element, look, plain, hidden } in the order of the focus
  const lookOf = (element) => {
    const active = document.getElementById(element.getAttribute("aria-activedescendant"));
    return [element, element.parentElement, element.parentElement?.parentElement, active].filter(Boolean).map(ownLook).join(" ");
  };
  const ownLook = (element) => {
    const { outlineStyle, outlineWidth, outlineColor, boxShadow, backgroundColor, borderColor } = getComputedStyle(element);
    return [outlineStyle === "none" ? "none" : outlineStyle + outlineWidth + outlineColor, boxShadow, backgroundColor, borderColor].join();
  };
  const isCovered = (element) => {
    if (element.matches(".skip")) return false; // it is there with the focus only
    const box = element.getBoundingClientRect();
    const points = [[0.5, 0.5], [0.1, 0.2], [0.9, 0.8]].map(([x, y]) => [box.left + box.width * x, box.top + box.height * y]);
    const tops = points.map(([x, y]) => document.elementFromPoint(x, y));
    return !tops.some((top) => top && (element.contains(top) || top.contains(element) || top.closest("label")?.control === element));
  };
  addEventListener.call(document, "focusin", ({ target }) => stops.push({ element: target, look: lookOf(target) }), true);
  addEventListener.call(document, "focusout", ({ target }) => {
    const stop = stops.at(-1);
    if (stop?.element === target) Object.assign(stop, { plain: lookOf(target), hidden: target.isConnected && isCovered(target) });
  }, true);

  const scope = () => [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const isThere = (element) => element.isConnected && !element.disabled && element.type !== "hidden" && !element.closest("[inert], fieldset:disabled")
    && element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 0;
  const clickable = () => [...scope().querySelectorAll("*")].filter((element) =>
    isThere(element) && (element.matches(CONTROLS) ? element.tabIndex >= 0 || !element.matches("[tabindex]") || pressed.get(element) > 0 : pressed.get(element) > 0));
  const nameOf = (element) => {
    const text = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent || element.title || element.id;
    return `${element.localName}${element.className ? `.${String(element.className).split(" ")[0]}` : ""} “${text.trim().replace(/\s+/g, " ").slice(0, 50)}”`;
  };
  const isReached = (element, reached) => reached.has(element)
    || [...reached].some((one) => one.matches(WITHIN) && one.contains(element))
    || (element.matches(WITHIN.replaceAll(",", " *,") + " *") && [...reached].some((one) => element.closest(WITHIN).contains(one)))
    || [...reached].some((one) => one.matches("[aria-controls]") && document.getElementById(one.getAttribute("aria-controls"))?.contains(element))
    || Boolean(element.closest("[role=img]")) // a chart says in words what it shows under the pointer
    || (element.type === "radio" && [...reached].some((one) => one.type === "radio" && one.name === element.name && one.form === element.form))
    || (element.localName === "label" && reached.has(element.control));

  window.keyboard = {
    /** Begins a walk; returns how many stops there may be. */
    begin() {
      stops = [];
      return scope().querySelectorAll(CONTROLS).length + 2;
    },
    /** Gives the focus to all that Tab would stop at, one by one, without the keys; returns what was wrong. */
    glance() {
      document.activeElement.blur();
      stops = [];
      for (const one of scope().querySelectorAll(CONTROLS)) if (isThere(one) && one.tabIndex >= 0) one.focus({ focusVisible: true });
      document.activeElement.blur();
      return this.end();
    },
    isRound: () => stops.length > 1 && stops.slice(1).some((stop) => stop.element === stops[0].element),
    /** Ends a walk; returns what was wrong. */
    end() {
      const reached = new Set(stops.map((stop) => stop.element));
      const inside = scope();
      const seen = stops.filter((stop) => stop.plain && stop.element.isConnected);
      const names = (elements) => [...new Set(elements.map(nameOf))];
      return {
        missed: names(clickable().filter((element) => !isReached(element, reached))),
        invisible: names(seen.filter((stop) => stop.look === stop.plain).map((stop) => stop.element)),
        covered: names(seen.filter((stop) => stop.hidden).map((stop) => stop.element)),
        outside: names([...reached].filter((element) => element.isConnected && !inside.contains(element))),
      };
    },
    focused: () => (document.activeElement === document.body || !document.activeElement ? "" : nameOf(document.activeElement)),
    isInDialog: () => scope().contains(document.activeElement),
    buttons: () => [...scope().querySelectorAll("button:not([role])")].filter((one) => isThere(one) && one.tabIndex >= 0)
      .map((one) => (one.getAttribute("aria-label") ?? one.textContent).trim().replace(/\s+/g, " ")),
    /** Resolves when nothing in the page has changed for a moment. */
    settle: () => new Promise((done) => {
      const end = performance.now() + 3000;
      let last = performance.now();
      const observer = new MutationObserver(() => { last = performance.now(); });
      observer.observe(document, { childList: true, subtree: true, characterData: true });
      const look = () => {
        if (performance.now() - last < 150 && performance.now() < end) return setTimeout(look, 30);
        observer.disconnect();
        return done();
      };
      look();
    }),
  };
})();

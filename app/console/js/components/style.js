// Style sheets of rooms, loaded when the room is.
const loaded = new Map();

/** Loads a style sheet beside a module once: await loadStyle(import.meta.url, "objects.css"). */
export function loadStyle(moduleUrl, name) {
  const href = new URL(name, moduleUrl).href;
  if (!loaded.has(href)) {
    loaded.set(href, new Promise((resolve, reject) => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.href = href;
      link.onload = resolve;
      link.onerror = () => {
        loaded.delete(href);
        reject(new Error(`${name} cannot be loaded`));
      };
      document.head.append(link);
    }));
  }
  return loaded.get(href);
}

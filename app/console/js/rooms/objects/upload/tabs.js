// Which tabs of the console live: each has uploads of its own.
const ANSWER_MS = 250;
const KEY = "sluice-tab";

function ownTab() {
  const known = sessionStorage.getItem(KEY) ?? `${Date.now()}-${Math.random()}`;
  sessionStorage.setItem(KEY, known);
  return known;
}

/** This tab; a reload keeps it. */
export const TAB = ownTab();

const channel = new BroadcastChannel("sluice-tabs");
channel.addEventListener("message", ({ data }) => {
  if (data === "who") channel.postMessage(TAB);
});

/** Returns the other tabs that answer. A tab that was duplicated has the name of its original. */
export function livingTabs() {
  const found = new Set();
  const listen = ({ data }) => data !== "who" && found.add(data);
  channel.addEventListener("message", listen);
  channel.postMessage("who");
  return new Promise((resolve) => {
    setTimeout(() => {
      channel.removeEventListener("message", listen);
      resolve(found);
    }, ANSWER_MS);
  });
}

// What is being uploaded in this tab, and who wants to know.
import { signal } from "../../../ui.js";
import { Rate } from "./rate.js";
import { forget } from "./saved.js";

const TICK_MS = 200;

/** Changes whenever an item did; read `items` then. */
export const version = signal(0);
/** Whether new ones are held back. */
export const paused = signal(false);
/** Uploads by id; `state`: waiting, sending, done, failed, exists, needs-file. */
export const items = new Map();
/** Bytes a second. */
export const rate = new Rate();

const listeners = new Set();
let ticking = null;
let finished = [];

/** Says that an item changed; pages see it some times a second. */
export function changed() {
  ticking ??= setTimeout(() => {
    ticking = null;
    if (finished.length) forget(finished);
    finished = [];
    version.value += 1;
  }, TICK_MS);
}

/** Says that an item is done. */
export function announceDone(item) {
  finished.push(item.id);
  for (const listener of listeners) listener(item);
}

/** Calls `listener({ bucket, key, size })` for each object that was uploaded, until the returned function is called. */
export function onUploaded(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns whether something is on its way or waits. */
export function isBusy() {
  return [...items.values()].some((item) => item.state === "sending" || item.state === "waiting");
}

/** Removes those that are done from the list. */
export function clearDone() {
  for (const item of items.values()) if (item.state === "done") items.delete(item.id);
  changed();
}

window.addEventListener("beforeunload", (event) => {
  if (isBusy()) event.preventDefault();
});

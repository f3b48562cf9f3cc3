// Runs the uploads of this tab: they go on while one looks at other pages.
import { session } from "../../../session.js";
import { effect } from "../../../ui.js";
import { FileGone } from "./checksums.js";
import { abort, MULTIPART_BYTES } from "./multipart.js";
import { announceDone, changed, items, paused, rate } from "./queue-state.js";
import { restore } from "./restore.js";
import { forget, save } from "./saved.js";
import { Slots } from "./slots.js";
import { TAB } from "./tabs.js";
import { uploadLarge, uploadSmall } from "./upload-file.js";

const REQUESTS = 4;
const SMALL_AHEAD = 24;
const LARGE_AHEAD = 2;
export const MAX_ITEMS = 50_000;

const slots = new Slots(REQUESTS);
const waiting = { small: [], large: [] };
const running = { small: 0, large: 0 };

/** Adds files: [{ file, key, handle }]. Those that S3 has already are asked about unless `replace`. Returns how many were taken. */
export function add(bucket, files, { replace = false } = {}) {
  const taken = files.slice(0, Math.max(0, MAX_ITEMS - items.size));
  const made = taken.map(({ file, key, handle }) => ({
    id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, bucket, key, file, handle, replace,
    size: file.size, modified: file.lastModified, type: file.type || "application/octet-stream",
    account: session.peek().arn, tab: TAB, state: "waiting", sent: 0, error: null, note: "",
  }));
  for (const item of made) enqueue(item);
  save(made.map(toRecord));
  pump();
  return taken.length;
}

function toRecord({ id, bucket, key, handle, replace, size, modified, type, account, uploadId, partSize }) {
  return { id, bucket, key, handle, replace, size, modified, type, account, tab: TAB, uploadId, partSize };
}

function kindOf(item) {
  return item.size >= MULTIPART_BYTES ? "large" : "small";
}

function enqueue(item) {
  Object.assign(item, { state: "waiting", error: null, note: "" });
  items.set(item.id, item);
  waiting[kindOf(item)].push(item);
  changed();
}

function pump() {
  if (paused.peek() || !session.peek()) return;
  for (const [kind, most] of [["large", LARGE_AHEAD], ["small", SMALL_AHEAD]]) {
    while (running[kind] < most && waiting[kind].length) {
      const item = waiting[kind].shift();
      if (item.state === "waiting" && items.has(item.id)) run(item, kind);
    }
  }
}

async function run(item, kind) {
  running[kind] += 1;
  item.abort = new AbortController();
  item.state = "sending";
  changed();
  try {
    await (kind === "large" ? uploadLarge : uploadSmall)(item, toolsOf(item));
    Object.assign(item, { state: "done", sent: item.size, file: null, handle: null });
    announceDone(item);
  } catch (error) {
    settle(item, error);
  } finally {
    running[kind] -= 1;
    item.note = "";
    changed();
    pump();
  }
}

function settle(item, error) {
  if (error.name === "AbortError") return; // paused or cancelled: the caller of that says what comes
  if (error.status === 401) hold(item);
  else if (error.code === "PreconditionFailed") Object.assign(item, { state: "exists", sent: 0 });
  else if (error instanceof FileGone) Object.assign(item, { state: "needs-file", file: null, error });
  else Object.assign(item, { state: "failed", error });
}

function hold(item) {
  item.state = "waiting";
  waiting[kindOf(item)].unshift(item);
}

function toolsOf(item) {
  return {
    slots, signal: item.abort.signal, save: () => save([toRecord(item)]),
    onWait: (error, milliseconds) => {
      item.note = error ? `${error.message} Trying again in ${Math.ceil(milliseconds / 1000)} s.` : "";
      changed();
    },
    progress: (bytes) => {
      rate.add(Math.max(0, bytes - item.sent));
      item.sent = bytes;
      changed();
    },
  };
}

/** Holds everything back; parts that are on their way are sent again later. */
export function pauseAll() {
  paused.value = true;
  for (const item of items.values()) {
    if (item.state !== "sending") continue;
    item.abort.abort();
    hold(item);
  }
  changed();
}

/** Goes on with what was held back. */
export function resumeAll() {
  paused.value = false;
  pump();
  changed();
}

/** Tries an item again; `replace`: over the object that is there; `file`: chosen again. */
export function retry(item, { replace = item.replace, file = item.file } = {}) {
  item.replace = replace;
  item.file = file;
  if (!file) return;
  enqueue(item);
  pump();
}

/** Ends an item and removes its parts. */
export async function cancel(item) {
  item.abort?.abort();
  items.delete(item.id);
  forget([item.id]);
  changed();
  if (item.state !== "done") await abort(item).catch(() => {}); // what stays is listed as an open upload
}

let restored = "";
effect(() => {
  const account = session.value?.arn;
  if (!account) return;
  if (restored !== account) restore((restored = account));
  pump();
});

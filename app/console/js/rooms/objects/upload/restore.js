// Brings uploads back that a reload, or the end of the browser, interrupted.
import { changed, items } from "./queue-state.js";
import { readAll } from "./saved.js";
import { livingTabs, TAB } from "./tabs.js";

/** Brings back what a reload interrupted: each needs its file again. */
export async function restore(account) {
  const [records, tabs] = await Promise.all([readAll(), livingTabs()]);
  for (const record of records) {
    if (record.account !== account || items.has(record.id) || (record.tab !== TAB && tabs.has(record.tab))) continue;
    items.set(record.id, { ...record, state: "needs-file", sent: 0, error: null, note: "" });
  }
  changed();
}

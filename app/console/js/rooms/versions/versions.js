// The room of versions: the keys of a bucket with what was deleted, and the time line of one key.
import { html } from "../../ui.js";
import { loadStyle } from "../../components/style.js";
import { KeysPage } from "./keys-page.js";
import { TimelinePage } from "./timeline-page.js";

await loadStyle(import.meta.url, "versions.css");

/** Chooses the page: NAME/versions lists keys below `?prefix=`, with `?key=` it is that key's time line. */
export default function Versions({ segments, query }) {
  const bucket = segments[0];
  const key = query.get("key");
  if (key) return html`<${TimelinePage} key=${key} bucket=${bucket} name=${key} chosen=${query.get("version") ?? ""} />`;
  const prefix = query.get("prefix") ?? "";
  return html`<${KeysPage} key=${prefix} bucket=${bucket} prefix=${prefix} />`;
}

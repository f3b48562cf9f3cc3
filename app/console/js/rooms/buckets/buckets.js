// The room of buckets: the list, and the pages of one bucket. Objects and versions are rooms of their own below it.
import { html, useMemo } from "../../ui.js";
import { RoomView } from "../../components/room-view.js";
import { loadStyle } from "../../components/style.js";
import { page as shown, pathTo } from "../../router.js";

const PAGES = {
  __proto__: null,
  list: async () => (await import("./list/list-page.js")).ListPage,
  overview: async () => (await import("./overview/overview-page.js")).OverviewPage,
  settings: async () => (await import("./settings/settings-room.js")).SettingsRoom,
  objects: async () => (await import("../objects/objects.js")).default,
  versions: async () => (await import("../versions/versions.js")).default,
};

const pageOf = (segments) => (segments.length === 0 ? "list" : segments[1] ?? "overview");

PAGES[pageOf(shown.peek().segments.slice(1))]?.().catch(() => {}); // comes beside the style; RoomView says what is missing
await loadStyle(import.meta.url, "buckets.css");

/** Chooses the page: no segment is the list, NAME the bucket, NAME/objects, NAME/versions and NAME/settings its parts. */
export default function Buckets({ segments, query }) {
  const name = pageOf(segments);
  const room = useMemo(() => (name in PAGES ? { load: async () => ({ default: await PAGES[name]() }) } : null), [name]);
  const page = { segments: ["buckets", ...segments], query, href: pathTo(["buckets", ...segments]) };
  return html`<${RoomView} key=${name} room=${room} page=${page} />`;
}

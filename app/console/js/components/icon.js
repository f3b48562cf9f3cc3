// Icons: strokes in a square of 24, decorative, so that a screen reader passes over them.
import { html } from "../ui.js";

const PATHS = {
  sluice: "M5 3v18M19 3v18M5 7h14M9 7v7h6V7M3 18c1.5-1.5 3-1.5 4.5 0s3 1.5 4.5 0 3-1.5 4.5 0 3 1.5 4.5 0",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  bucket: "M4 6c0-1.7 3.6-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3zM4 6l2 13c.3 1.200 3 2 6 2s5.700-.8 6-2l2-13",
  people: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM2 21c0-4 3-7 7-7s7 3 7 7M16 4a4 4 0 0 1 0 7M18 14c2.500.800 4 3.500 4 7",
  disk: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  list: "M8 6h13M8 12h13M8 18h13M3 6h.01M3 12h.01M3 18h.01",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  menu: "M4 6h16M4 12h16M4 18h16",
  more: "M12 5.5a.5.5 0 1 0 0-1 .5.5 0 0 0 0 1zM12 12.5a.5.5 0 1 0 0-1 .5.5 0 0 0 0 1zM12 19.5a.5.5 0 1 0 0-1 .5.5 0 0 0 0 1z",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  upload: "M12 16V4M7 9l5-5 5 5M4 20h16",
  download: "M12 4v12M7 11l5 5 5-5M4 20h16",
  folder: "M3 6h6l2 2h10v11H3z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 14h10l1-14",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  lock: "M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  copy: "M8 8h12v12H8zM4 16V4h12",
  check: "M5 13l4 4L19 7",
  warn: "M12 4L2 20h20zM12 10v4M12 17h.01",
  up: "M12 19V5M6 11l6-6 6 6",
  refresh: "M20 11a8 8 0 0 0-14-4L3 10M3 4v6h6M4 13a8 8 0 0 0 14 4l3-3M21 20v-6h-6",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.500-7 8-7s8 3 8 7",
  play: "M7 4l13 8-13 8z",
  pause: "M8 4v16M16 4v16",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
};

/** Shows the icon of a name of the table above. */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}

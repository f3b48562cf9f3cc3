import { html } from "../../ui.js";

const WIDTH = 240;
const HEIGHT = 40;
const SPAN_MS = 900_000;

/** A line of the last 15 minutes without axes. `points`: [[ms, value or null]]; `label` says it in words. */
export function Sparkline({ points, label, color = "c0" }) {
  const end = Math.max(points.at(-1)?.[0] ?? 0, 1);
  const most = Math.max(...points.map(([, value]) => value ?? 0), 0);
  const place = ([at, value]) => [
    round(WIDTH - ((end - at) / SPAN_MS) * WIDTH),
    round(HEIGHT - 2 - (most > 0 ? value / most : 0) * (HEIGHT - 4)),
  ];
  return html`
    <svg class="sparkline" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${label}>
      <path d=${draw(points, place)} style=${{ stroke: `var(--${color})` }} />
      ${failures(points).map((at) => html`<path class="failure" key=${at} d="M${round(WIDTH - ((end - at) / SPAN_MS) * WIDTH)} 0V${HEIGHT}" />`)}
    </svg>`;
}

function draw(points, place) {
  let path = "";
  let drawing = false;
  for (const point of points) {
    if (point[1] === null) {
      drawing = false;
      continue;
    }
    const [x, y] = place(point);
    path += drawing ? `L${x} ${y}` : `M${x} ${y}h.01`;
    drawing = true;
  }
  return path;
}

function failures(points) {
  return points.filter(([, value]) => value === null).map(([at]) => at);
}

function round(value) {
  return Math.round(value * 10) / 10;
}

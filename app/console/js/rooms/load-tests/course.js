// The requests of each second since the start, coloured by target: a plain picture of what is going on.
import { html } from "../../ui.js";
import { formatNumber } from "../../format.js";

const WIDTH = 600;
const HEIGHT = 120;
const GAP_SECONDS = 4;

/** `points`: [{ at, target, requests }] in seconds; `seconds`: how long it will be in all. */
export function Course({ points, targets, seconds }) {
  const most = Math.max(1, ...points.map((point) => point.requests));
  const place = (point) => `${((point.at / Math.max(1, seconds)) * WIDTH).toFixed(1)},${(HEIGHT - (point.requests / most) * (HEIGHT - 4) - 2).toFixed(1)}`;
  const label = `Requests a second since the start, up to ${formatNumber(most)}`;
  return html`
    <figure class="course">
      <figcaption class="row small"><span class="quiet grow">Requests a second, up to ${formatNumber(most)}</span>
        ${targets.map((name, number) => html`<span key=${name} class="row"><i class=${`key k${number % 8}`}></i>${name}</span>`)}</figcaption>
      <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}>
        <line class="base" x1="0" x2=${WIDTH} y1=${HEIGHT - 1} y2=${HEIGHT - 1} />
        ${splitRuns(points).map((run) => html`<polyline key=${run[0].at} class=${`k${Math.max(0, targets.indexOf(baseName(run[0].target, targets))) % 8}`} points=${run.map(place).join(" ")} />`)}
      </svg>
    </figure>`;
}

/** Plain files of a target have its colour. */
function baseName(name, targets) {
  return targets.includes(name) ? name : name.replace(/-direct$/, "");
}

function splitRuns(points) {
  const runs = [];
  for (const point of points) {
    const last = runs.at(-1)?.at(-1);
    if (!last || last.target !== point.target || point.at - last.at > GAP_SECONDS) runs.push([]);
    runs.at(-1).push(point);
  }
  return runs;
}

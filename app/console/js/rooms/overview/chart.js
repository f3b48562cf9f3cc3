// A chart of the last 15 minutes. The plot library is loaded when the first chart is shown.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../ui.js";
import { loadStyle } from "../../components/style.js";

const HEIGHT_PX = 170;
const SPAN_SECONDS = 900;
const FONT_PX = 12;
const LEAST_SECONDS = 0.001;
const MINUTES = [60, 120, 300, 600];

let library = null;

function loadLibrary() {
  library ??= Promise.all([
    import("../../../vendor/uplot.js"),
    loadStyle(import.meta.url, "../../../vendor/uplot.css"),
  ]).then(([module]) => module.default);
  library.catch(() => {
    library = null;
  });
  return library;
}

/**
 * Draws `data` ([seconds, values, …]). `lines`: [{ label, color }] by token name; `format` says a value; `steps` are the
 * distances between the axis' marks, "decades" for latencies. `summary` is what it says in words, for screen readers.
 */
export function Chart({ title, data, lines, format, steps, summary }) {
  const root = useRef(null);
  const plot = useRef(null);
  const latest = useRef(data);
  latest.current = data;
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let closed = false;
    const element = root.current;
    const make = async () => {
      const UPlot = await loadLibrary();
      if (closed) return;
      plot.current?.destroy();
      plot.current = new UPlot(options({ UPlot, root: element, lines, format, steps }), latest.current, element);
    };
    make().catch(() => setFailed(true));
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const remake = () => make().catch(() => setFailed(true));
    scheme.addEventListener("change", remake);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    observer.observe(element);
    return () => {
      closed = true;
      scheme.removeEventListener("change", remake);
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useLayoutEffect(() => plot.current?.setData(data), [data]);
  return html`
    <figure class="card chart">
      <figcaption class="row"><h3 class="grow">${title}</h3>
        ${lines.map((line) => html`<span class="row small key" key=${line.label}><i class="swatch" style=${{ background: `var(--${line.color})` }}></i>${line.label}</span>`)}
      </figcaption>
      <div class="plot" ref=${root} role="img" aria-label=${`${title}. ${summary}`}></div>
      ${isEmpty(data) && html`<p class="nothing small quiet">No requests in the last 15 minutes</p>`}
      ${failed && html`<p class="small quiet">The chart cannot be drawn: its library was not loaded. Load the page again.</p>`}
    </figure>`;
}

function isEmpty(data) {
  return data.slice(1).every((values) => values.every((value) => value === null));
}

function options({ UPlot, root, lines, format, steps }) {
  const style = getComputedStyle(root);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const font = `${FONT_PX}px ${color("sans")}`;
  const axis = { stroke: color("quiet"), font, grid: { stroke: color("rule"), width: 1 }, ticks: { show: false } };
  return {
    width: root.clientWidth,
    height: HEIGHT_PX,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "overview" }, drag: { x: false, y: false }, points: { size: 6 } },
    plugins: [readout(format, lines)],
    scales: { x: { time: true, range: (_, least, most) => [most - SPAN_SECONDS, most] }, y: valueScale(UPlot, steps) },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 26, incrs: MINUTES, values: (_, times) => times.map(clock) },
      { ...axis, ...valueAxis(axis, steps), values: (_, values) => values.map((value) => (value === null ? "" : format(value))), size: 66 },
    ],
    series: [{}, ...lines.map((line) => ({
      label: line.label, stroke: color(line.color), width: 1.5, points: { show: false }, spanGaps: false, paths: UPlot.paths.linear(),
    }))],
  };
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

function valueScale(UPlot, steps) {
  if (steps === "decades") return { distr: 3, range: (_, least, most) => UPlot.rangeLog(least ?? LEAST_SECONDS, most ?? 1, 10, true) };
  return { range: (_, least, most) => [0, Math.max((most ?? 0) * 1.1, steps?.[0] ?? 1)] };
}

function valueAxis(axis, steps) {
  if (steps !== "decades") return { incrs: steps, space: 34 };
  const decades = (_, values) => values.map((value) => (Number.isInteger(Math.round(Math.log10(value) * 1000) / 1000) ? value : null));
  return { filter: decades, grid: { ...axis.grid, filter: decades } };
}

/** Says the values under the pointer, in all charts at once. */
function readout(format, lines) {
  const box = document.createElement("div");
  box.className = "readout small";
  return {
    hooks: {
      init: (plot) => plot.over.append(box),
      setCursor: (plot) => {
        const { idx, left } = plot.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden) return;
        const time = new Date(plot.data[0][idx] * 1000).toLocaleTimeString();
        const values = lines.map((line, index) => `${line.label} ${format(plot.data[index + 1][idx])}`);
        box.textContent = [time, ...values].join(" · ");
      },
    },
  };
}

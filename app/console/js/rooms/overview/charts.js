import { html, useEffect, useMemo, useRef, useState } from "../../ui.js";
import { formatBytes, formatNumber, formatSeconds } from "../../format.js";
import { Chart } from "./chart.js";
import { newest, series } from "./samples.js";

const SLOW_MS = 10_000;
const POWERS = Array.from({ length: 38 }, (_, power) => 2 ** power);
const WHOLE = [0, 1, 2, 3, 4].flatMap((power) => [1, 2, 5].map((factor) => factor * 10 ** power));

const rate = (bytes) => (bytes === null || bytes === undefined ? "–" : `${formatBytes(Math.round(bytes))}/s`);
const number = (value) => formatNumber(value);

/** The charts of the overview. With `prefers-reduced-motion` they move every ten seconds only. */
export function Charts({ samples }) {
  const shown = useCalm(samples);
  const requests = useMemo(() => series(shown, ["requests", "client_errors", "server_errors"]), [shown]);
  const latency = useMemo(() => series(shown, ["p50", "p99"]), [shown]);
  const bytes = useMemo(() => series(shown, ["bytes_in", "bytes_out"]), [shown]);
  const running = useMemo(() => series(shown, ["running"]), [shown]);
  const now = newest(shown);
  return html`
    <div class="charts">
      <${Chart} title="Requests a second" data=${requests} format=${number} steps=${WHOLE}
        summary=${`Now ${number(now.requests)}, of these ${number((now.client_errors ?? 0) + (now.server_errors ?? 0))} errors.`}
        lines=${[{ label: "all", color: "c0" }, { label: "4xx", color: "c4" }, { label: "5xx", color: "bad" }]} />
      <${Chart} title="Latency" data=${latency} format=${formatSeconds} steps="decades"
        summary=${`Half of the requests take up to ${formatSeconds(now.p50)}, 99 % up to ${formatSeconds(now.p99)}.`}
        lines=${[{ label: "p50", color: "c2" }, { label: "p99", color: "c3" }]} />
      <${Chart} title="Bytes a second" data=${bytes} format=${rate} steps=${POWERS}
        summary=${`Now ${rate(now.bytes_in)} in and ${rate(now.bytes_out)} out.`}
        lines=${[{ label: "in", color: "c6" }, { label: "out", color: "c0" }]} />
      <${Chart} title="Requests running" data=${running} format=${number} steps=${WHOLE} summary=${`Now ${number(now.running)}.`}
        lines=${[{ label: "running", color: "c1" }]} />
    </div>`;
}

/** Returns the samples, or with `prefers-reduced-motion` those of every ten seconds. */
function useCalm(samples) {
  const calm = useRef(matchMedia("(prefers-reduced-motion: reduce)"));
  const latest = useRef(samples);
  latest.current = samples;
  const [kept, setKept] = useState(samples);
  useEffect(() => {
    const timer = setInterval(() => setKept(latest.current), SLOW_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => setKept(latest.current), [samples.known]);
  return calm.current.matches ? kept : samples;
}

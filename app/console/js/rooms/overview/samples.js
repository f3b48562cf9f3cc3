// The samples of the last 15 minutes, in columns as charts want them.
const KEPT_MS = 900_000;
const GAP_MS = 3500;

/** Samples without a point. */
export const NO_SAMPLES = { columns: [], points: [], operations: [], buckets: null, known: false };

/** Returns samples with the history that the gateway sent; points of before a restart of the gateway stay. */
export function addHistory(samples, history) {
  const first = history.points[0]?.[0] ?? Infinity;
  const points = trim([...samples.points.filter(([at]) => at < first), ...history.points]);
  return { columns: history.columns, points, operations: history.operations, buckets: history.buckets, known: true };
}

/** Returns samples with one more. */
export function addSample(samples, { point, operations, buckets }) {
  const last = samples.points.at(-1);
  if (last && point[0] <= last[0]) return samples;
  return { ...samples, points: trim([...samples.points, point]), operations, buckets };
}

function trim(points) {
  const oldest = (points.at(-1)?.[0] ?? 0) - KEPT_MS;
  return points[0]?.[0] < oldest ? points.filter(([at]) => at >= oldest) : points;
}

/** Returns the newest value of each column: { requests: 12, … }; empty before the first sample. */
export function newest({ columns, points }) {
  const last = points.at(-1);
  return last ? Object.fromEntries(columns.map((name, index) => [name, last[index]])) : {};
}

/** Returns seconds since the epoch and the values of some columns, for a chart. Where samples are missing there is a gap. */
export function series({ columns, points }, names) {
  const places = names.map((name) => columns.indexOf(name));
  const data = [[], ...names.map(() => [])];
  let before = null;
  for (const point of points) {
    if (before !== null && point[0] - before > GAP_MS) {
      data[0].push((before + 1000) / 1000);
      places.forEach((_, index) => data[index + 1].push(null));
    }
    data[0].push(point[0] / 1000);
    places.forEach((place, index) => data[index + 1].push(point[place]));
    before = point[0];
  }
  return data;
}

// Which preview an object has.
const SUFFIXES = {
  image: "avif bmp gif ico jpeg jpg png svg webp", video: "m4v mov mp4 ogv webm", audio: "aac flac m4a mp3 oga ogg opus wav",
  pdf: "pdf", csv: "csv tsv", parquet: "parquet",
  text: "c cfg conf cpp css go h htm html ini java js json jsonl log lua md mjs ndjson php pl properties py r rb rs rst sh sql svelte toml ts tsx txt xml yaml yml",
};
const BY_SUFFIX = new Map(Object.entries(SUFFIXES).flatMap(([kind, list]) => list.split(" ").map((suffix) => [suffix, kind])));
const TEXTS = /^(text\/.*|application\/(.*\+)?(json|xml|x-ndjson|javascript|x-yaml|yaml|toml|sql|x-sh))$/;

/** Returns image, video, audio, pdf, csv, parquet, text, or null, by content type and else by the key's suffix. */
export function kindOf(type, key) {
  if (type === "text/csv" || type === "text/tab-separated-values") return "csv";
  if (type === "application/vnd.apache.parquet") return "parquet";
  if (type === "application/pdf") return "pdf";
  const main = type.split("/")[0];
  if (["image", "video", "audio"].includes(main)) return main;
  const bySuffix = BY_SUFFIX.get(key.slice(key.lastIndexOf(".") + 1).toLowerCase()) ?? null;
  if (bySuffix && bySuffix !== "text") return bySuffix;
  return TEXTS.test(type) ? "text" : bySuffix;
}

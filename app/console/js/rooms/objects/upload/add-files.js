// Puts chosen files into the queue, and says so.
import { toast } from "../../../components/toast.js";
import { formatCount, formatPlural } from "../../../format.js";
import { add, MAX_ITEMS } from "./queue.js";

const MAX_KEY_BYTES = 1024;

/** Adds files of `chosen-files.js`. In a bucket with versions they go over what is there, which stays as a version. */
export function addFiles(bucket, { files, truncated }, versioning) {
  const fitting = files.filter(({ key }) => new TextEncoder().encode(key).length <= MAX_KEY_BYTES);
  const taken = add(bucket, fitting, { replace: versioning === "Enabled" });
  if (!files.length) toast("There are no files in that.", { kind: "bad" });
  if (fitting.length < files.length) toast(`${formatPlural(files.length - fitting.length, "file")} left out: a key has at most 1024 bytes.`, { kind: "bad" });
  if (truncated || taken < fitting.length) toast(`The queue holds ${formatCount(MAX_ITEMS)} files: add the rest later.`, { kind: "bad" });
}

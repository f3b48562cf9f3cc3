// Addresses of the room's pages.
import { pathTo } from "../../router.js";

/** Returns the path of a folder, or of an object in it. */
export function folderPath(bucket, prefix, key) {
  return pathTo(["buckets", bucket, "objects"], { prefix, key });
}

/** Returns the prefix above a prefix. */
export function parentOf(prefix) {
  return prefix.replace(/[^/]*\/?$/, "");
}

// Addresses of the room's pages, and of the objects' room.
import { pathTo } from "../../router.js";

/** Returns the path of a key's time line; `version` is the one that is shown. */
export function timelinePath(bucket, key, version) {
  return pathTo(["buckets", bucket, "versions"], { key, version });
}

/** Returns the path of the list of keys below a prefix. */
export function keysPath(bucket, prefix) {
  return pathTo(["buckets", bucket, "versions"], { prefix });
}

/** Returns the path of the folder of a key in the room of objects. */
export function folderPath(bucket, prefix) {
  return pathTo(["buckets", bucket, "objects"], { prefix });
}

/** Returns the prefix that ends with the last "/" before the end of a key or prefix. */
export function parentOf(key) {
  return key.replace(/[^/]*\/?$/, "");
}

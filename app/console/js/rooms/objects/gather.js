// All objects of a selection: its own, and those below its folders, found page by page.
import { objectsBelow } from "./actions.js";

/** Rows that one work takes: the rest is for a lifecycle rule or a client. */
export const MAX_GATHERED = 200_000;

/** Returns [{ key, size }] of rows; `onProgress(count)`. Throws for too many. */
export async function gather(bucket, rows, signal, onProgress) {
  const found = rows.filter((row) => !row.folder).map(({ key, size }) => ({ key, size }));
  for (const folder of rows.filter((row) => row.folder)) {
    for await (const page of objectsBelow(bucket, folder.key, signal)) {
      for (const { key, size } of page) found.push({ key, size });
      onProgress(found.length);
      if (found.length > MAX_GATHERED) throw new Error("There are more than 200,000 objects. Use a lifecycle rule or a client for so many.");
    }
  }
  return found;
}

// Asks a worker for checksums of files and their parts.
let worker = null;
let count = 0;
const waiting = new Map();

/** The file cannot be read: it was changed, moved or removed since it was chosen. */
export class FileGone extends Error {
  constructor() {
    super("The file cannot be read any more: it was changed or removed since it was chosen. Choose it again.");
    this.name = "FileGone";
  }
}

/** Returns the CRC-32C of a Blob as S3's headers have it. Throws FileGone. */
export function checksumOf(blob) {
  worker ??= startWorker();
  return new Promise((resolve, reject) => {
    count += 1;
    waiting.set(count, { resolve, reject });
    worker.postMessage({ id: count, blob });
  });
}

function startWorker() {
  const made = new Worker(new URL("./checksum-worker.js", import.meta.url), { type: "module" });
  made.onmessage = ({ data: { id, checksum, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new FileGone());
    else resolve(checksum);
  };
  made.onerror = (event) => {
    worker = null;
    for (const { reject } of waiting.values()) reject(new Error(`Checksums cannot be computed: ${event.message ?? "no worker"}`));
    waiting.clear();
  };
  return made;
}

// Computes checksums of parts of files beside the page: { id, blob } → { id, checksum } or { id, error }.
import { crc32c, toHeader } from "./crc32c.js";

const STEP_BYTES = 4 * 1024 * 1024;

self.onmessage = async ({ data: { id, blob } }) => {
  try {
    let crc = 0;
    for (let start = 0; start < blob.size; start += STEP_BYTES) {
      crc = crc32c(new Uint8Array(await blob.slice(start, start + STEP_BYTES).arrayBuffer()), crc);
    }
    self.postMessage({ id, checksum: toHeader(crc) });
  } catch (error) {
    self.postMessage({ id, error: error.name });
  }
};

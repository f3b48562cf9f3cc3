// Uploads one file, whole or in parts.
import { callS3 } from "../../../s3.js";
import { checksumOf } from "./checksums.js";
import { uploadParts } from "./multipart.js";
import { persist } from "./retry.js";
import { presignSoon, put } from "./send.js";

/** Uploads `item.file` in one request; `tools` are those of `uploadParts`. Throws S3Error, ApiError, FileGone, AbortError. */
export async function uploadSmall(item, { slots, signal, onWait, progress }) {
  const checksum = await checksumOf(item.file);
  const headers = { "content-type": item.type, "x-amz-checksum-crc32c": checksum, ...(item.replace ? {} : { "if-none-match": "*" }) };
  const request = { method: "PUT", bucket: item.bucket, key: item.key, query: {}, headers };
  await persist(async () => {
    const url = await presignSoon(request);
    await slots.run(signal, () => put({ url, headers, body: item.file, signal, onProgress: progress }));
  }, signal, onWait);
}

/** Uploads `item.file` in parts, unless the key is taken. Throws as `uploadSmall`. */
export async function uploadLarge(item, tools) {
  if (!item.replace && !item.uploadId) await requireFree(item, tools);
  await uploadParts(item, tools);
}

/** Throws PreconditionFailed for a key that is taken: the last request would find that out after all bytes. */
async function requireFree(item, { signal, onWait }) {
  try {
    await persist(() => callS3({ method: "HEAD", bucket: item.bucket, key: item.key, signal }), signal, onWait);
  } catch (error) {
    if (error.status === 404 || error.status === 403) return;
    throw error;
  }
  throw Object.assign(new Error("There is an object of this name."), { code: "PreconditionFailed" });
}

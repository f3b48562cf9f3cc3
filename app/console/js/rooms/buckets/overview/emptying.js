// Empties a bucket by S3 from the browser: versions, delete markers, open uploads; then deletes it, if wanted.
import { callS3, callS3Xml } from "../../../s3.js";
import { childrenOf, S3_NAMESPACE, textOf, toXml } from "../../../xml.js";
import { crc32Base64 } from "./crc32.js";

const BATCH = 1000;
const UPLOADS_AT_ONCE = 8;
const MAX_FAILURES = 100;

/**
 * Removes everything from a bucket. `report({ removed, bytes, uploads, failures })` hears of the progress; `failures`:
 * [{ key, version, message }]. Locked versions stay. Throws AbortError when `signal` aborts, S3Error.
 */
export async function emptyBucket({ bucket, signal, report }) {
  const state = { removed: 0, bytes: 0, uploads: 0, failures: [], failed: 0 };
  const tell = () => report({ ...state, failures: [...state.failures] });
  await removeVersions(bucket, signal, state, tell);
  await abortUploads(bucket, signal, state, tell);
  tell();
  return state;
}

async function removeVersions(bucket, signal, state, tell) {
  let markers = {};
  for (;;) {
    signal.throwIfAborted();
    const query = { versions: "", "encoding-type": "url", "max-keys": String(BATCH), ...markers };
    const page = await callS3Xml({ bucket, query, signal });
    const entries = [...childrenOf(page, "Version"), ...childrenOf(page, "DeleteMarker")].map(readEntry);
    if (entries.length) await removeBatch(bucket, entries, signal, state);
    tell();
    if (textOf(page, "IsTruncated") !== "true") return;
    // go on behind this page: what could not be removed stays there
    markers = { "key-marker": decode(textOf(page, "NextKeyMarker")), "version-id-marker": textOf(page, "NextVersionIdMarker") ?? "" };
    if (!markers["version-id-marker"]) delete markers["version-id-marker"];
  }
}

function readEntry(element) {
  return { key: decode(textOf(element, "Key")), version: textOf(element, "VersionId"), size: Number(textOf(element, "Size") ?? 0) };
}

function decode(text) {
  return decodeURIComponent(text.replaceAll("+", "%20"));
}

async function removeBatch(bucket, entries, signal, state) {
  const objects = entries.map(({ key, version }) => ["Object", [["Key", key], ["VersionId", version]]]);
  const body = toXml("Delete", [["Quiet", "true"], ...objects], S3_NAMESPACE);
  const headers = { "x-amz-checksum-crc32": crc32Base64(body) };
  const answer = await callS3Xml({ method: "POST", bucket, query: { delete: "" }, headers, body, signal, repeat: true });
  const errors = childrenOf(answer, "Error");
  const failed = new Set(errors.map((error) => `${textOf(error, "Key")}\n${textOf(error, "VersionId") ?? ""}`));
  state.failed += errors.length;
  for (const error of errors.slice(0, MAX_FAILURES - state.failures.length)) {
    state.failures.push({ key: textOf(error, "Key"), version: textOf(error, "VersionId"), message: `${textOf(error, "Code")}: ${textOf(error, "Message")}` });
  }
  for (const entry of entries) {
    if (failed.has(`${entry.key}\n${entry.version ?? ""}`)) continue;
    state.removed += 1;
    state.bytes += entry.size;
  }
}

async function abortUploads(bucket, signal, state, tell) {
  for (;;) {
    signal.throwIfAborted();
    const page = await callS3Xml({ bucket, query: { uploads: "", "encoding-type": "url", "max-uploads": String(BATCH) }, signal });
    const uploads = childrenOf(page, "Upload").map((one) => ({ key: decode(textOf(one, "Key")), id: textOf(one, "UploadId") }));
    const before = state.uploads;
    while (uploads.length) {
      const some = uploads.splice(0, UPLOADS_AT_ONCE);
      await Promise.all(some.map((upload) => abortUpload(bucket, upload, signal, state)));
      tell();
    }
    if (textOf(page, "IsTruncated") !== "true" || state.uploads === before) return;
  }
}

async function abortUpload(bucket, { key, id }, signal, state) {
  try {
    await callS3({ method: "DELETE", bucket, key, query: { uploadId: id }, signal });
    state.uploads += 1;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error.code === "NoSuchUpload") return;
    state.failed += 1;
    if (state.failures.length < MAX_FAILURES) state.failures.push({ key, version: null, message: `${error.code}: ${error.message}` });
  }
}

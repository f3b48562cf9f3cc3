// Uploads a large file in parts, and goes on with the parts that the server has.
import { callS3, callS3Xml, S3Error } from "../../../s3.js";
import { childrenOf, parseXml, S3_NAMESPACE, textOf, toXml } from "../../../xml.js";
import { checksumOf, FileGone } from "./checksums.js";
import { persist } from "./retry.js";
import { presignSoon, put } from "./send.js";

const MIB = 1024 * 1024;
const PART_BYTES = 16 * MIB;
const MAX_PARTS = 10_000;
/** Parts of one file that are prepared at once. */
const AHEAD = 4;
/** Bytes from which a file goes in parts. */
export const MULTIPART_BYTES = 32 * MIB;

/** Returns the bytes of a part of a file: whole MiB, so that 10,000 suffice. */
export function partBytes(size) {
  return Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS / MIB) * MIB);
}

/** Uploads `item.file`; `tools`: { slots, signal, onWait, progress(bytes), save }. Throws S3Error, ApiError, FileGone, AbortError. */
export async function uploadParts(item, tools) {
  const again = (work) => persist(work, tools.signal, tools.onWait);
  const known = item.uploadId ? await again(() => listParts(item, tools.signal)) : null;
  if (known) await checkSameFile(item, known);
  else await again(() => create(item, tools));
  const parts = known ?? new Map();
  const sent = new Map([...parts].map(([number]) => [number, sizeOf(item, number)]));
  const report = () => tools.progress([...sent.values()].reduce((sum, bytes) => sum + bytes, 0));
  report();
  const count = Math.ceil(item.size / item.partSize);
  const missing = Array.from({ length: count }, (_, index) => index + 1).filter((number) => !parts.has(number));
  const stop = new AbortController();
  const signal = AbortSignal.any([tools.signal, stop.signal]);
  const work = async () => {
    for (let number = missing.shift(); number; number = missing.shift()) {
      const progress = (bytes) => report(sent.set(number, bytes));
      parts.set(number, await sendPart(item, number, { ...tools, signal, progress }));
      progress(sizeOf(item, number));
    }
  };
  try {
    await Promise.all(Array.from({ length: AHEAD }, work));
  } catch (error) {
    stop.abort(error); // the other parts of this file end too
    throw error;
  }
  item.completing ??= Date.now();
  await again(() => complete(item, parts, tools.signal));
}

async function create(item, { signal, save }) {
  const headers = { "content-type": item.type, "x-amz-checksum-algorithm": "CRC32C" };
  const root = await callS3Xml({ method: "POST", bucket: item.bucket, key: item.key, query: { uploads: "" }, headers, signal });
  item.uploadId = textOf(root, "UploadId");
  item.partSize = partBytes(item.size);
  save();
}

/** Returns the parts that the server has by their numbers, or null when it forgot the upload. */
async function listParts(item, signal) {
  const parts = new Map();
  for (let marker = "0"; marker; ) {
    let root;
    try {
      root = await callS3Xml({ bucket: item.bucket, key: item.key, query: { uploadId: item.uploadId, "part-number-marker": marker }, signal });
    } catch (error) {
      if (error.code === "NoSuchUpload") return null;
      throw error;
    }
    for (const one of childrenOf(root, "Part")) {
      const number = Number(textOf(one, "PartNumber"));
      const isWhole = Number(textOf(one, "Size")) === sizeOf(item, number);
      if (isWhole) parts.set(number, { etag: textOf(one, "ETag"), checksum: textOf(one, "ChecksumCRC32C") });
    }
    marker = textOf(root, "IsTruncated") === "true" ? textOf(root, "NextPartNumberMarker") : null;
  }
  return parts;
}

/** Throws FileGone unless first and last known part are of this file. */
async function checkSameFile(item, parts) {
  const numbers = [...parts.keys()];
  for (const number of new Set([numbers[0], numbers.at(-1)])) {
    if (number && (await checksumOf(slice(item, number))) !== parts.get(number).checksum) throw new FileGone();
  }
}

function slice(item, number) {
  return item.file.slice((number - 1) * item.partSize, number * item.partSize);
}

function sizeOf(item, number) {
  return Math.max(0, Math.min(item.partSize, item.size - (number - 1) * item.partSize));
}

async function sendPart(item, number, { slots, signal, onWait, progress }) {
  const body = slice(item, number);
  const checksum = await checksumOf(body);
  const headers = { "x-amz-checksum-crc32c": checksum };
  const query = { partNumber: String(number), uploadId: item.uploadId };
  const request = await persist(async () => {
    progress(0);
    return slots.run(signal, async () => {
      const url = await presignSoon({ method: "PUT", bucket: item.bucket, key: item.key, query, headers });
      return put({ url, headers, body, signal, onProgress: progress });
    });
  }, signal, onWait);
  return { etag: request.getResponseHeader("etag"), checksum };
}

async function complete(item, parts, signal) {
  const listed = [...parts].sort(([one], [other]) => one - other).map(([number, { etag, checksum }]) => ["Part", [
    ["PartNumber", number], ["ETag", etag], ["ChecksumCRC32C", checksum],
  ]]);
  const headers = { "content-type": "application/xml", ...(item.replace ? {} : { "if-none-match": "*" }) };
  const body = toXml("CompleteMultipartUpload", listed, S3_NAMESPACE);
  const request = { method: "POST", bucket: item.bucket, key: item.key, query: { uploadId: item.uploadId }, headers, body, signal };
  try {
    await completeOnce(request);
  } catch (error) {
    // an answer that was lost on its way: the object is there already
    if (!["NoSuchUpload", "PreconditionFailed"].includes(error.code) || !(await isThere(item, parts.size, signal))) throw error;
  }
}

async function completeOnce(request) {
  const response = await callS3(request);
  const root = parseXml(await response.text()); // an error may come behind a 200
  if (root.localName === "Error") throw new S3Error(500, textOf(root, "Code"), textOf(root, "Message"), textOf(root, "RequestId") ?? "");
}

async function isThere(item, parts, signal) {
  const response = await callS3({ method: "HEAD", bucket: item.bucket, key: item.key, signal });
  const isOurs = item.completing && Date.parse(response.headers.get("last-modified")) >= item.completing - 60_000;
  return isOurs && Number(response.headers.get("content-length")) === item.size && response.headers.get("etag").endsWith(`-${parts}"`);
}

/** Gives an upload's parts up. */
export async function abort(item) {
  if (item.uploadId) await callS3({ method: "DELETE", bucket: item.bucket, key: item.key, query: { uploadId: item.uploadId } });
}

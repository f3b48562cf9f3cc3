// What is done with objects: all of it by S3, as the person who is signed in.
import { callS3, callS3Xml, presign } from "../../s3.js";
import { childrenOf, S3_NAMESPACE, textOf, toXml } from "../../xml.js";
import { crc32c, toHeader } from "./upload/crc32c.js";
import { listPage } from "./listing.js";

const BATCH = 1000;
/** What no XML can hold, so that a list of keys cannot either. */
const NO_XML = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

/** Returns "Enabled", "Suspended", "" (never), or null when the person may not know. */
export async function readVersioning(bucket, signal) {
  try {
    return textOf(await callS3Xml({ bucket, query: { versioning: "" }, signal }), "Status") ?? "";
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** Yields the objects below a prefix, page by page. */
export async function* objectsBelow(bucket, prefix, signal) {
  let token = null;
  do {
    const { rows, next } = await listPage({ bucket, prefix, delimiter: "", token, signal });
    yield rows;
    token = next;
  } while (token);
}

/**
 * Deletes [{ key, versionId }], a thousand at a time. Returns { deleted: [{ key, versionId, marker }], errors: [{ key, code, message }] };
 * `marker` is the version of the delete marker that was made.
 */
export async function deleteObjects(bucket, objects, { signal, onProgress = () => {} } = {}) {
  const result = { deleted: [], errors: [] };
  for (const one of objects.filter(({ key }) => NO_XML.test(key))) await deleteAlone(bucket, one, signal, result);
  const batches = objects.filter(({ key }) => !NO_XML.test(key));
  for (let start = 0; start < batches.length; start += BATCH) {
    const root = await deleteBatch(bucket, batches.slice(start, start + BATCH), signal);
    for (const one of childrenOf(root, "Deleted")) {
      const isMarker = textOf(one, "DeleteMarker") === "true" && !textOf(one, "VersionId");
      result.deleted.push({ key: textOf(one, "Key"), marker: isMarker ? textOf(one, "DeleteMarkerVersionId") : null });
    }
    for (const one of childrenOf(root, "Error")) {
      result.errors.push({ key: textOf(one, "Key"), code: textOf(one, "Code"), message: textOf(one, "Message") });
    }
    onProgress(result.deleted.length + result.errors.length);
  }
  return result;
}

async function deleteAlone(bucket, { key, versionId }, signal, result) {
  try {
    const response = await callS3({ method: "DELETE", bucket, key, query: versionId ? { versionId } : {}, signal });
    const isMarker = !versionId && response.headers.get("x-amz-delete-marker") === "true";
    result.deleted.push({ key, marker: isMarker ? response.headers.get("x-amz-version-id") : null });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    result.errors.push({ key, code: error.code, message: error.message });
  }
}

function deleteBatch(bucket, objects, signal) {
  const listed = objects.map(({ key, versionId }) => ["Object", [["Key", key], ["VersionId", versionId]]]);
  const body = toXml("Delete", listed, S3_NAMESPACE);
  const headers = { "content-type": "application/xml", "x-amz-checksum-crc32c": toHeader(crc32c(new TextEncoder().encode(body))) };
  // to delete twice does no harm, so that it may be sent again
  return callS3Xml({ method: "POST", bucket, query: { delete: "" }, headers, body, signal, repeat: true });
}

/** Brings back what `deleteObjects` hid behind delete markers. */
export function undoDelete(bucket, deleted) {
  const markers = deleted.filter((one) => one.marker).map((one) => ({ key: one.key, versionId: one.marker }));
  return deleteObjects(bucket, markers);
}

function sourceOf(bucket, key) {
  return encodeURIComponent(`${bucket}/${key}`).replaceAll("%2F", "/");
}

/** Copies an object within S3. `headers` change what it has; `replace` allows an object at the new key. */
export async function copyObject(from, to, { headers = {}, replace = false, signal } = {}) {
  if (!replace) await requireFree(to, signal);
  const root = await callS3Xml({ method: "PUT", ...to, headers: { "x-amz-copy-source": sourceOf(from.bucket, from.key), ...headers }, signal });
  if (root.localName === "Error") throw new Error(textOf(root, "Message") ?? "The copy failed.");
}

async function requireFree(to, signal) {
  try {
    await callS3({ method: "HEAD", ...to, signal });
  } catch (error) {
    if (error.status === 404 || error.status === 403) return;
    throw error;
  }
  throw new Error(`There is an object at ${to.key} already.`);
}

/** Moves an object: at once by RenameObject where the bucket keeps no versions, else by a copy and a delete. */
export async function moveObject(from, to, { versioning, replace = false, signal }) {
  if (from.bucket === to.bucket && versioning === "") {
    const headers = { "x-amz-rename-source": `/${sourceOf(from.bucket, from.key)}`, ...(replace ? {} : { "if-none-match": "*" }) };
    try {
      await callS3({ method: "PUT", ...to, query: { renameObject: "" }, headers, signal });
      return;
    } catch (error) {
      if (error.code === "PreconditionFailed") throw new Error(`There is an object at ${to.key} already.`);
      if (error.status !== 501) throw error; // a store of plain files cannot
    }
  }
  await copyObject(from, to, { replace, signal });
  await callS3({ method: "DELETE", ...from, signal });
}

/** Returns a URL that downloads an object under its own name. */
export function downloadUrl(bucket, key, versionId) {
  const name = encodeURIComponent(key.split("/").filter(Boolean).at(-1) ?? "object").replace(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  const query = { "response-content-disposition": `attachment; filename*=UTF-8''${name}`, ...(versionId ? { versionId } : {}) };
  return presign({ method: "GET", bucket, key, query, headers: {} });
}

/** Lets the browser download a URL; the page stays. */
export function startDownload(url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  link.rel = "noreferrer";
  link.click();
}

// What is done to a version: all of it by S3, with the caller's rights.
import { callS3, callS3Xml } from "../../s3.js";
import { S3_NAMESPACE, textOf, toXml } from "../../xml.js";

const BYPASS = { "x-amz-bypass-governance-retention": "true" };
const XML = { "content-type": "application/xml" };

function encodeSource(bucket, key, versionId) {
  return `${encodeURIComponent(`${bucket}/${key}`).replaceAll("%2F", "/")}?versionId=${encodeURIComponent(versionId)}`;
}

/** Puts a copy of a version on top of its key, with its metadata and tags. Nothing is lost. */
export async function restoreVersion(bucket, version) {
  const headers = { "x-amz-copy-source": encodeSource(bucket, version.key, version.id) };
  if (version.storageClass) headers["x-amz-storage-class"] = version.storageClass;
  const root = await callS3Xml({ method: "PUT", bucket, key: version.key, headers });
  if (root.localName === "Error") throw new Error(textOf(root, "Message") ?? "The copy failed.");
}

/** Removes a version or a delete marker for good. `bypass` a retention of GOVERNANCE. */
export function removeVersion(bucket, version, { bypass = false } = {}) {
  return callS3({ method: "DELETE", bucket, key: version.key, query: { versionId: version.id }, headers: bypass ? BYPASS : {} });
}

/** Sets the retention: `mode` and `until` (a Date), or neither to remove it. */
export function setRetention(bucket, version, { mode, until, bypass = false }) {
  const content = mode ? [["Mode", mode], ["RetainUntilDate", until.toISOString()]] : [];
  return callS3({
    method: "PUT", bucket, key: version.key, query: { retention: "", versionId: version.id },
    headers: { ...XML, ...(bypass ? BYPASS : {}) }, body: toXml("Retention", content, S3_NAMESPACE),
  });
}

/** Sets or removes the legal hold. */
export function setLegalHold(bucket, version, on) {
  return callS3({
    method: "PUT", bucket, key: version.key, query: { "legal-hold": "", versionId: version.id },
    headers: XML, body: toXml("LegalHold", [["Status", on ? "ON" : "OFF"]], S3_NAMESPACE),
  });
}

/** Returns at most `limit` bytes of a version. */
export async function readBytes(bucket, version, limit, signal) {
  if (!version.size) return new Uint8Array();
  const headers = { range: `bytes=0-${limit - 1}` };
  const answer = await callS3({ bucket, key: version.key, query: { versionId: version.id }, headers, signal });
  return new Uint8Array(await answer.arrayBuffer());
}

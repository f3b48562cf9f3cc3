// Pages of ListObjectVersions. Keys come percent-encoded, since XML cannot hold every character.
import { callS3Xml } from "../../s3.js";
import { childrenOf, textOf } from "../../xml.js";

const FIRST_PAGE = 100;
const PAGE = 1000;

/**
 * Loads a page. `marker`: { key, version } of the page before, null for the first, which is smaller, so that it is here
 * sooner. Returns { versions, folders, next }; `next` is null at the end.
 */
export async function loadPage({ bucket, prefix, delimiter = "", marker, signal }) {
  const query = { versions: "", prefix, delimiter, "encoding-type": "url", "max-keys": String(marker ? PAGE : FIRST_PAGE) };
  if (marker) query["key-marker"] = marker.key;
  if (marker?.version) query["version-id-marker"] = marker.version;
  const root = await callS3Xml({ bucket, query, signal });
  const versions = [...root.children].filter((one) => one.localName === "Version" || one.localName === "DeleteMarker").map(readVersion);
  const folders = childrenOf(root, "CommonPrefixes").map((one) => decode(textOf(one, "Prefix")));
  const more = textOf(root, "IsTruncated") === "true";
  const next = more ? { key: decode(textOf(root, "NextKeyMarker")), version: textOf(root, "NextVersionIdMarker") ?? "" } : null;
  return { versions, folders, next };
}

/** Loads a page of one key only. It is the first of those that begin with it; `next` is null after its last version. */
export async function loadKeyPage({ bucket, key, marker, signal }) {
  const { versions, next } = await loadPage({ bucket, prefix: key, marker, signal });
  const own = versions.filter((one) => one.key === key);
  return { versions: own, next: own.length === versions.length && next?.key === key ? next : null };
}

function readVersion(element) {
  return {
    key: decode(textOf(element, "Key")),
    id: textOf(element, "VersionId"),
    marker: element.localName === "DeleteMarker",
    latest: textOf(element, "IsLatest") === "true",
    modified: textOf(element, "LastModified"),
    size: Number(textOf(element, "Size") ?? 0),
    etag: (textOf(element, "ETag") ?? "").replaceAll('"', ""),
    storageClass: textOf(element, "StorageClass") ?? "",
    owner: textOf(element, "Owner", "DisplayName") || textOf(element, "Owner", "ID") || "",
  };
}

function decode(text) {
  return decodeURIComponent((text ?? "").replaceAll("+", "%20"));
}

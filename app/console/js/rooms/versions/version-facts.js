// What S3 tells about one version: headers, tags, and its protection.
import { callS3 } from "../../s3.js";
import { parseXml, childrenOf, childOf, textOf } from "../../xml.js";

const META = "x-amz-meta-";
const SHOWN = ["content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires",
  "x-amz-server-side-encryption", "x-amz-website-redirect-location"];

/** Loads a version's headers and lock, and its tags where they may be read (else null). */
export async function loadFacts(bucket, version, signal) {
  const target = { bucket, key: version.key, signal };
  const [head, tags] = await Promise.all([
    callS3({ method: "HEAD", ...target, query: { versionId: version.id } }), loadTags(target, version.id),
  ]);
  return { ...readHead(head.headers), tags };
}

async function loadTags(target, versionId) {
  try {
    const answer = await callS3({ ...target, query: { tagging: "", versionId } });
    const set = childOf(parseXml(await answer.text()), "TagSet");
    return Object.fromEntries(childrenOf(set, "Tag").map((tag) => [textOf(tag, "Key"), textOf(tag, "Value")]));
  } catch (error) {
    if (error.name === "AbortError" || !(error.status >= 400 && error.status < 500)) throw error;
    return null;
  }
}

function readHead(headers) {
  const metadata = {};
  headers.forEach((value, name) => {
    if (name.startsWith(META)) metadata[name.slice(META.length)] = value;
  });
  const settings = Object.fromEntries(SHOWN.filter((name) => headers.has(name)).map((name) => [name, headers.get(name)]));
  return { metadata, settings, lock: readLock(headers), type: headers.get("content-type") ?? "" };
}

function readLock(headers) {
  return {
    mode: headers.get("x-amz-object-lock-mode") ?? "",
    until: headers.get("x-amz-object-lock-retain-until-date") ?? "",
    hold: headers.get("x-amz-object-lock-legal-hold") === "ON",
  };
}

/** Returns whether a retention has not ended. */
export function isRetained(lock) {
  return Boolean(lock.mode) && new Date(lock.until) > new Date();
}

// What S3 says of an object without its bytes.
import { callS3 } from "../../../s3.js";

/** Headers that one may change, with their labels. */
export const EDITABLE = [
  ["content-type", "Content-Type"], ["cache-control", "Cache-Control"], ["content-disposition", "Content-Disposition"],
  ["content-encoding", "Content-Encoding"], ["content-language", "Content-Language"], ["expires", "Expires"],
];
const CHECKSUMS = ["crc64nvme", "crc32c", "crc32", "sha256", "sha1"];
const META = "x-amz-meta-";

/** Returns size, times, headers, metadata and checksums of an object. Throws S3Error. */
export async function readHead(bucket, key, signal) {
  const { headers } = await callS3({ method: "HEAD", bucket, key, headers: { "x-amz-checksum-mode": "ENABLED" }, signal });
  const metadata = [...headers].filter(([name]) => name.startsWith(META)).map(([name, value]) => [name.slice(META.length), value]);
  const checksum = CHECKSUMS.find((name) => headers.has(`x-amz-checksum-${name}`));
  return {
    size: Number(headers.get("content-length")),
    type: (headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase(),
    modified: Date.parse(headers.get("last-modified")),
    etag: headers.get("etag") ?? "",
    versionId: headers.get("x-amz-version-id"),
    storageClass: headers.get("x-amz-storage-class") ?? "STANDARD",
    encryption: headers.get("x-amz-server-side-encryption"),
    kmsKey: headers.get("x-amz-server-side-encryption-aws-kms-key-id"),
    redirect: headers.get("x-amz-website-redirect-location"),
    restore: headers.get("x-amz-restore"),
    checksum: checksum ? `${checksum.toUpperCase()} ${headers.get(`x-amz-checksum-${checksum}`)}` : null,
    headers: Object.fromEntries(EDITABLE.map(([name]) => [name, headers.get(name) ?? ""])),
    metadata,
  };
}

/** Returns the request headers that write an object with these headers and metadata, and with what else it has. */
export function headersOf(head, headers, metadata) {
  const written = { "x-amz-metadata-directive": "REPLACE", "x-amz-copy-source-if-match": head.etag, "x-amz-storage-class": head.storageClass };
  for (const [name, value] of Object.entries(headers)) if (value) written[name] = value;
  for (const [name, value] of metadata) if (name) written[META + name.toLowerCase()] = value;
  if (head.redirect) written["x-amz-website-redirect-location"] = head.redirect;
  if (head.encryption) written["x-amz-server-side-encryption"] = head.encryption;
  if (head.kmsKey) written["x-amz-server-side-encryption-aws-kms-key-id"] = head.kmsKey;
  return written;
}

// The document of an inventory as a flat value.
import { child, documentOf, flag, isSameDocument, optional, text, texts } from "../shape.js";
import { parseXml } from "../../../../xml.js";

const DESTINATION = { account: text("AccountId"), bucket: text("Bucket"), format: text("Format"), prefix: optional("Prefix"), encryption: child("Encryption", { s3: child("SSE-S3", {}) }) };
const shape = documentOf("InventoryConfiguration", {
  id: text("Id"), enabled: flag("IsEnabled"), destination: child("Destination", { s3: child("S3BucketDestination", DESTINATION) }),
  filter: child("Filter", { prefix: text("Prefix") }), versions: text("IncludedObjectVersions"), fields: child("OptionalFields", { names: texts("Field") }), schedule: child("Schedule", { frequency: text("Frequency") }),
});

/** The root of the documents. */
export const ROOT = "InventoryConfiguration";

/** Returns the text of an element with its namespace. */
export function sourceOf(element) {
  return new XMLSerializer().serializeToString(element);
}

/** Returns { id, source, value, shown } of a document. */
export function readInventory(source) {
  const found = shape.read(parseXml(source));
  const { s3 } = found.destination;
  const value = {
    id: found.id, enabled: found.enabled, bucket: s3.bucket, account: s3.account, format: s3.format, prefix: s3.prefix, encrypted: Boolean(s3.encryption?.s3),
    filter: found.filter?.prefix ?? "", versions: found.versions, fields: found.fields?.names ?? [], frequency: found.schedule.frequency,
  };
  return { id: found.id, source, value, shown: isSameDocument(source, writeInventory(value)) };
}

/** Returns the document of a value. */
export function writeInventory(value) {
  const { account, bucket, format, prefix } = value;
  return shape.write({
    id: value.id, enabled: value.enabled, destination: { s3: { account, bucket, format, prefix, encryption: value.encrypted ? { s3: {} } : null } },
    filter: value.filter ? { prefix: value.filter } : null, versions: value.versions, fields: value.fields.length ? { names: value.fields } : null, schedule: { frequency: value.frequency },
  });
}

/** Returns a value to begin with. */
export function newInventory(bucket) {
  return { id: "", enabled: true, bucket: "arn:aws:s3:::", account: null, format: "CSV", prefix: `inventory/${bucket}`, encrypted: false, filter: "", versions: "Current", fields: ["Size", "LastModifiedDate", "ETag"], frequency: "Daily" };
}

/** Fields of a list beside bucket and key. */
export const FIELDS = [
  "Size", "LastModifiedDate", "ETag", "StorageClass", "IsMultipartUploaded", "ReplicationStatus", "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode",
  "ObjectLockLegalHoldStatus", "IntelligentTieringAccessTier", "BucketKeyStatus", "ChecksumAlgorithm", "ObjectAccessControlList", "ObjectOwner",
];

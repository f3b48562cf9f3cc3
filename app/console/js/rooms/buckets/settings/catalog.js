// The settings of a bucket, in the order of their page. A setting's module is loaded when it is needed.
import { indent } from "./shape.js";

const CATALOG = [
  ["Access", [
    ["policy", "Policy"], ["public-access", "Public access block"], ["ownership", "Object ownership"], ["acl", "Access control list"], ["cors", "Cross-origin access (CORS)"],
  ]],
  ["Objects", [
    ["versioning", "Versions"], ["object-lock", "Object lock"], ["encryption", "Encryption"], ["lifecycle", "Lifecycle"], ["tags", "Tags"],
  ]],
  ["Delivery", [
    ["notifications", "Notifications"], ["website", "Website"], ["logging", "Access log"], ["inventory", "Inventory"], ["request-payment", "Request payment"],
  ]],
];

/** Settings that plain files cannot have: S3 answers 501. */
const NOT_ON_PLAIN_FILES = new Set(["versioning", "object-lock", "encryption", "lifecycle", "notifications", "ownership", "acl"]);

/** Returns the groups of settings of a bucket: [{ label, settings: [{ name, title }] }]. */
export function settingsOf(bucket) {
  return CATALOG.map(([label, settings]) => ({
    label,
    settings: settings.filter(([name]) => !bucket.plain_files || !NOT_ON_PLAIN_FILES.has(name)).map(([name, title]) => ({ name, title })),
  }));
}

/** Loads the description of a setting by its name; null for none. */
export async function loadKind(name) {
  const known = CATALOG.some(([, settings]) => settings.some(([one]) => one === name));
  return known ? withDefaults((await import(`./kinds/${name}.js`)).default) : null;
}

function withDefaults(kind) {
  return { empty: () => null, render: ({ source, value }) => indent(source ?? kind.write(value)), ...kind };
}

// Rules for the names of buckets: "Bucket naming rules", Amazon S3 User Guide.
const PREFIXES = ["xn--", "sthree-", "amzn-s3-demo-"];
const SUFFIXES = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/** Returns what is wrong with a bucket's name, or "". */
export function nameProblem(name) {
  if (!name) return "";
  const wrong = /[^a-z0-9.-]/.exec(name);
  if (wrong) return /[A-Z]/.test(wrong[0]) ? "Capital letters are not allowed." : `“${wrong[0]}” is not allowed: use a–z, 0–9, dots and hyphens.`;
  if (!/^[a-z0-9]/.test(name)) return "It must begin with a letter or a digit.";
  if (name.length < 3) return "It needs at least 3 characters.";
  if (name.length > 63) return `It may have 63 characters, and has ${name.length}.`;
  if (!/[a-z0-9]$/.test(name)) return "It must end with a letter or a digit.";
  if (name.includes("..")) return "Two dots may not follow each other.";
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return "It may not look like an IP address.";
  const prefix = PREFIXES.find((one) => name.startsWith(one));
  if (prefix) return `Names that begin with ${prefix} are reserved.`;
  const suffix = SUFFIXES.find((one) => name.endsWith(one));
  return suffix ? `Names that end with ${suffix} are reserved.` : "";
}

/** Returns what one should know about a valid name, or "". */
export function nameHint(name) {
  if (name.includes(".")) return "With dots, HTTPS clients need path-style addresses: a wildcard certificate does not cover it.";
  return "3 to 63 characters: a–z, 0–9, dots and hyphens. It cannot be changed later.";
}

const NAMES = { inline: "inline policy", group: "group policy", managed: "managed policy", aws: "AWS policy", session: "session policy" };

/** Returns a policy of an answer as people call it. */
export function describePolicy({ kind, name, owner }) {
  if (kind === "bucket") return "the bucket policy";
  const of = kind === "inline" || kind === "group" ? ` of ${owner.split(":").pop()}` : "";
  return `${NAMES[kind] ?? "policy"} ${name}${of}`;
}

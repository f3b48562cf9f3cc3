// Policies to begin with. Each is one statement that is added to what is there.
const arn = (bucket, keys = "/*") => `arn:aws:s3:::${bucket}${keys}`;

/** [{ name, label, about, statement(bucket) }] */
export const TEMPLATES = [
  {
    label: "Public read",
    about: "Everybody may download objects, but not list them. The public access block must allow it.",
    statement: (bucket) => ({ Sid: "PublicRead", Effect: "Allow", Principal: "*", Action: "s3:GetObject", Resource: arn(bucket) }),
  },
  {
    label: "Read-only account",
    about: "Another account may list and read. Put its number in the place of the zeros.",
    statement: (bucket) => ({
      Sid: "ReadOnlyAccount", Effect: "Allow", Principal: { AWS: "arn:aws:iam::000000000000:root" },
      Action: ["s3:GetBucketLocation", "s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket"], Resource: [arn(bucket, ""), arn(bucket)],
    }),
  },
  {
    label: "Upload only",
    about: "Another account may write objects, and neither read nor list nor delete.",
    statement: (bucket) => ({
      Sid: "UploadOnly", Effect: "Allow", Principal: { AWS: "arn:aws:iam::000000000000:root" },
      Action: ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"], Resource: arn(bucket),
    }),
  },
  {
    label: "Deny without TLS",
    about: "Nobody may use plain http.",
    statement: (bucket) => ({
      Sid: "DenyWithoutTls", Effect: "Deny", Principal: "*", Action: "s3:*", Resource: [arn(bucket, ""), arn(bucket)],
      Condition: { Bool: { "aws:SecureTransport": "false" } },
    }),
  },
  {
    label: "Only from a network",
    about: "Nobody may use it from elsewhere, you included: check the network twice.",
    statement: (bucket) => ({
      Sid: "OnlyFromNetwork", Effect: "Deny", Principal: "*", Action: "s3:*", Resource: [arn(bucket, ""), arn(bucket)],
      Condition: { NotIpAddress: { "aws:SourceIp": "192.0.2.0/24" } },
    }),
  },
  {
    label: "Require encryption",
    about: "Objects must be written with keys of the gateway.",
    statement: (bucket) => ({
      Sid: "RequireEncryption", Effect: "Deny", Principal: "*", Action: "s3:PutObject", Resource: arn(bucket),
      Condition: { Null: { "s3:x-amz-server-side-encryption": "true" } },
    }),
  },
  {
    label: "Receive access logs",
    about: "The gateway may deliver access logs and inventories of other buckets here.",
    statement: (bucket) => ({
      Sid: "ReceiveLogs", Effect: "Allow", Principal: { Service: ["logging.s3.amazonaws.com", "s3.amazonaws.com"] }, Action: "s3:PutObject", Resource: arn(bucket),
    }),
  },
];

/** Returns a policy text with a statement more; the text must be JSON or empty. Throws SyntaxError. */
export function addStatement(text, statement) {
  const policy = text.trim() ? JSON.parse(text) : { Version: "2012-10-17", Statement: [] };
  const before = [policy.Statement ?? []].flat();
  const taken = new Set(before.map((one) => one.Sid));
  let sid = statement.Sid;
  for (let number = 2; taken.has(sid); number += 1) sid = `${statement.Sid}${number}`;
  return JSON.stringify({ ...policy, Statement: [...before, { ...statement, Sid: sid }] }, null, 2);
}

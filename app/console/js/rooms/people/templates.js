// Policies to begin with: [{ label, document }]. The names in capitals are to be replaced.
const VERSION = "2012-10-17";

function policy(...statements) {
  return JSON.stringify({ Version: VERSION, Statement: statements }, null, 2);
}

export const IDENTITY_TEMPLATES = [
  {
    label: "Read one bucket",
    document: policy(
      { Effect: "Allow", Action: ["s3:ListBucket", "s3:GetBucketLocation"], Resource: "arn:aws:s3:::BUCKET" },
      { Effect: "Allow", Action: "s3:GetObject", Resource: "arn:aws:s3:::BUCKET/*" },
    ),
  },
  {
    label: "Read and write one bucket",
    document: policy(
      { Effect: "Allow", Action: ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"], Resource: "arn:aws:s3:::BUCKET" },
      { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], Resource: "arn:aws:s3:::BUCKET/*" },
    ),
  },
  {
    label: "A folder of one's own in a bucket",
    document: policy(
      { Effect: "Allow", Action: "s3:ListBucket", Resource: "arn:aws:s3:::BUCKET", Condition: { StringLike: { "s3:prefix": "home/${aws:username}/*" } } },
      { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], Resource: "arn:aws:s3:::BUCKET/home/${aws:username}/*" },
    ),
  },
  {
    label: "Write backups that the writer cannot delete",
    document: policy({ Effect: "Allow", Action: ["s3:ListBucket", "s3:PutObject"], Resource: ["arn:aws:s3:::BUCKET", "arn:aws:s3:::BUCKET/*"] }),
  },
  {
    label: "Rotate one's own access keys",
    document: policy({ Effect: "Allow", Action: ["iam:*AccessKey*", "iam:GetUser"], Resource: "arn:aws:iam::*:user/${aws:username}" }),
  },
  {
    label: "See the gateway's state in the console",
    document: policy({ Effect: "Allow", Action: ["sluice:GetOverview", "sluice:ListStores", "sluice:ListJobs"], Resource: "*" }),
  },
];

/** Returns trust policies for an account, by its number. */
export function trustTemplates(number) {
  const trust = (principal, more = {}) => policy({ Effect: "Allow", Principal: { AWS: principal }, Action: "sts:AssumeRole", ...more });
  return [
    { label: "Users of this account that may assume it", document: trust(`arn:aws:iam::${number}:root`) },
    { label: "One user", document: trust(`arn:aws:iam::${number}:user/USER`) },
    { label: "Another account, with a shared secret", document: trust("arn:aws:iam::ACCOUNT:root", { Condition: { StringEquals: { "sts:ExternalId": "SECRET" } } }) },
  ];
}

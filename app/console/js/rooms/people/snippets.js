// Settings of S3 tools, ready to paste. Each is tested with its tool: tests/console/test_snippets.py.
const PROFILE = "sluice";

/**
 * Returns [{ tool, what, parts: [{ label, text }] }]. `connection`: { endpoint, region, bucket, accessKey, secretKey, token };
 * token is "" for permanent keys.
 */
export function makeSnippets(connection) {
  return [aws, boto3, rclone, mc, duckdb, terraform, s3fs].map((make) => make(connection));
}

function aws({ endpoint, region, bucket, accessKey, secretKey, token }) {
  return {
    tool: "aws", what: "AWS CLI, and all SDKs of AWS that read its files",
    parts: [
      { label: "~/.aws/config", text: lines(`[profile ${PROFILE}]`, `region = ${region}`, `endpoint_url = ${endpoint}`, "s3 =", "    addressing_style = path") },
      {
        label: "~/.aws/credentials",
        text: lines(`[${PROFILE}]`, `aws_access_key_id = ${accessKey}`, `aws_secret_access_key = ${secretKey}`, token ? `aws_session_token = ${token}` : null),
      },
      { label: "Then", text: lines(`aws --profile ${PROFILE} s3 ls ${shell(`s3://${bucket}/`)}`) },
    ],
  };
}

function boto3({ endpoint, region, bucket, accessKey, secretKey, token }) {
  const text = lines(
    "import boto3", "from botocore.config import Config", "", "s3 = boto3.client(", '    "s3",',
    `    endpoint_url=${quote(endpoint)},`, `    region_name=${quote(region)},`,
    `    aws_access_key_id=${quote(accessKey)},`, `    aws_secret_access_key=${quote(secretKey)},`, token ? `    aws_session_token=${quote(token)},` : null,
    '    config=Config(s3={"addressing_style": "path"}),', ")",
    `for found in s3.list_objects_v2(Bucket=${quote(bucket)}).get("Contents", []):`, '    print(found["Key"], found["Size"])',
  );
  return { tool: "boto3", what: "Python", parts: [{ label: "list.py", text }] };
}

function rclone({ endpoint, region, bucket, accessKey, secretKey, token }) {
  const text = lines(
    `[${PROFILE}]`, "type = s3", "provider = Other", `endpoint = ${endpoint}`, `region = ${region}`,
    `access_key_id = ${accessKey}`, `secret_access_key = ${secretKey}`, token ? `session_token = ${token}` : null, "force_path_style = true",
  );
  return {
    tool: "rclone", what: "copy, sync, mount",
    parts: [{ label: "~/.config/rclone/rclone.conf", text }, { label: "Then", text: lines(`rclone ls ${shell(`${PROFILE}:${bucket}`)}`) }],
  };
}

function mc({ endpoint, bucket, accessKey, secretKey, token }) {
  const [scheme, host] = endpoint.split("://");
  const keys = [accessKey, secretKey, token].filter(Boolean).map(encodeURIComponent).join(":");
  const alias = token ? `export MC_HOST_${PROFILE}=${shell(`${scheme}://${keys}@${host}`)}` : `mc alias set ${PROFILE} ${shell(endpoint)} ${shell(accessKey)} ${shell(secretKey)}`;
  return { tool: "mc", what: "MinIO's client", parts: [{ label: "Shell", text: lines(alias, `mc ls ${shell(`${PROFILE}/${bucket}`)}`) }] };
}

function duckdb({ endpoint, region, bucket, accessKey, secretKey, token }) {
  const url = new URL(endpoint);
  const text = lines(
    "INSTALL httpfs;", "LOAD httpfs;", `CREATE SECRET ${PROFILE} (`, "    TYPE s3,", `    KEY_ID ${sql(accessKey)},`, `    SECRET ${sql(secretKey)},`,
    token ? `    SESSION_TOKEN ${sql(token)},` : null, `    ENDPOINT ${sql(url.host)},`, `    REGION ${sql(region)},`, "    URL_STYLE 'path',",
    `    USE_SSL ${url.protocol === "https:"}`, ");", `SELECT * FROM ${sql(`s3://${bucket}/*.parquet`)} LIMIT 10;`,
  );
  return { tool: "DuckDB", what: "SQL on Parquet, CSV and JSON", parts: [{ label: "SQL", text }] };
}

function terraform({ endpoint, region, bucket, accessKey, secretKey, token }) {
  const text = lines(
    "terraform {", "  required_providers {", "    aws = {", '      source = "hashicorp/aws"', "    }", "  }", "}", "", 'provider "aws" {',
    ...aligned([
      ["region", hcl(region)], ["access_key", hcl(accessKey)], ["secret_key", hcl(secretKey)], token && ["token", hcl(token)],
      ["s3_use_path_style", "true"], ["skip_metadata_api_check", "true"], ["skip_region_validation", "true"],
    ]),
    "", "  endpoints {", ...aligned([["iam", hcl(endpoint)], ["s3", hcl(endpoint)], ["sts", hcl(endpoint)]]).map((line) => `  ${line}`), "  }", "}", "",
    `data "aws_s3_objects" ${hcl("found")} {`, `  bucket = ${hcl(bucket)}`, "}",
  );
  return { tool: "Terraform", what: "buckets, users and policies as code", parts: [{ label: "main.tf", text }] };
}

function s3fs({ endpoint, region, bucket, accessKey, secretKey, token }) {
  const place = shell(`/mnt/${bucket}`);
  const mount = `s3fs ${shell(bucket)} ${place} -o url=${shell(endpoint)} -o endpoint=${shell(region)} -o use_path_request_style`;
  const parts = token
    ? [{ label: "Shell", text: lines(`export AWSACCESSKEYID=${shell(accessKey)}`, `export AWSSECRETACCESSKEY=${shell(secretKey)}`, `export AWSSESSIONTOKEN=${shell(token)}`, `${mount} -o use_session_token`) }]
    : [{ label: "~/.passwd-s3fs (chmod 600)", text: lines(`${accessKey}:${secretKey}`) }, { label: "Shell", text: lines(`mkdir -p ${place}`, `${mount} -o passwd_file=$HOME/.passwd-s3fs`) }];
  return { tool: "s3fs", what: "a bucket as a directory (FUSE)", parts };
}

function lines(...all) {
  return `${all.filter((line) => typeof line === "string").join("\n")}\n`;
}

/** Lines `name = value` as `terraform fmt` has them. */
function aligned(pairs) {
  const given = pairs.filter(Boolean);
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `  ${name.padEnd(width)} = ${value}`);
}

const quote = (text) => JSON.stringify(text);
const sql = (text) => `'${text.replaceAll("'", "''")}'`;
const hcl = (text) => JSON.stringify(text).replaceAll("${", "$${").replaceAll("%{", "%%{");
const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

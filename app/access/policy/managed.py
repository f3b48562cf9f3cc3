"""The policies that every account can attach, by their ARNs: some of AWS, and those that MinIO has built in.

"AWS managed policy reference guide". Their texts cover this gateway's services only: AWS's policies of these names
allow more. Those of MinIO ("Built-In Policies" of its documentation) have the path `minio/`.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

ARN_START = "arn:aws:iam::aws:policy/"
MINIO = "minio/"


class Managed(NamedTuple):
    """A managed policy of AWS."""

    name: str
    text: str


def _policy(name: str, *actions: str, path: str = "") -> tuple[str, Managed]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    text = orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()
    return ARN_START + path + name, Managed(name, text)


MANAGED = dict(
    [
        _policy("AdministratorAccess", "*"),
        _policy("AmazonS3FullAccess", "s3:*"),
        _policy("AmazonS3ReadOnlyAccess", "s3:Get*", "s3:List*", "s3:Describe*"),
        _policy("IAMFullAccess", "iam:*"),
        _policy("IAMReadOnlyAccess", "iam:Get*", "iam:List*", "iam:GenerateCredentialReport", "iam:Simulate*"),
        _policy("consoleAdmin", "admin:*", "iam:*", "kms:*", "s3:*", "sluice:*", "sts:*", path=MINIO),
        _policy("diagnostics", "admin:ServerInfo", path=MINIO),
        _policy("readonly", "s3:GetBucketLocation", "s3:GetObject", path=MINIO),
        _policy("readwrite", "s3:*", path=MINIO),
        _policy("writeonly", "s3:PutObject", path=MINIO),
    ]
)

"""The AWS managed policies that can be attached here, by their ARNs.

"AWS managed policy reference guide". Their texts cover this gateway's services only: AWS's policies of these names
allow more.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

ARN_START = "arn:aws:iam::aws:policy/"


class Managed(NamedTuple):
    """A managed policy of AWS."""

    name: str
    text: str


def _policy(name: str, *actions: str) -> tuple[str, Managed]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    text = orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()
    return ARN_START + name, Managed(name, text)


MANAGED = dict(
    [
        _policy("AdministratorAccess", "*"),
        _policy("AmazonS3FullAccess", "s3:*"),
        _policy("AmazonS3ReadOnlyAccess", "s3:Get*", "s3:List*", "s3:Describe*"),
        _policy("IAMFullAccess", "iam:*"),
        _policy("IAMReadOnlyAccess", "iam:Get*", "iam:List*", "iam:GenerateCredentialReport", "iam:Simulate*"),
    ]
)

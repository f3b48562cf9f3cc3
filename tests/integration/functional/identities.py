"""Users, roles and sessions of the first account, for tests that ask what these may do."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import boto3
from botocore.config import Config

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

_numbers = itertools.count(1)


def service(
    gateway: Gateway,
    name: str,
    key: str = ACCESS_KEY,
    secret: str = SECRET_KEY,
    token: str | None = None,
    region: str = "us-east-1",
) -> Any:
    """boto3 for IAM or STS."""
    return boto3.client(
        name,
        endpoint_url=gateway.endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        region_name=region,
        config=Config(retries={"total_max_attempts": 1}),
    )


def policy(*actions: str, resource: Any = "*", effect: str = "Allow", **fields: Any) -> str:
    found = {"Effect": effect, "Action": list(actions), "Resource": resource} | fields
    return json.dumps({"Version": "2012-10-17", "Statement": found})


class User:
    """A new user of the first account."""

    def __init__(self, gateway: Gateway, iam: Any, *documents: str) -> None:
        self.gateway, self.iam = gateway, iam
        self.name = f"user-{time.time_ns()}-{next(_numbers)}"
        self.arn = iam.create_user(UserName=self.name)["User"]["Arn"]
        key = iam.create_access_key(UserName=self.name)["AccessKey"]
        self.key, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        for number, document in enumerate(documents):
            iam.put_user_policy(UserName=self.name, PolicyName=f"p{number}", PolicyDocument=document)
        self.s3 = client(gateway.endpoint, self.key, self.secret)
        self.sts = service(gateway, "sts", self.key, self.secret)

    def set(self, document: str) -> None:
        """Give the user just this policy."""
        self.iam.put_user_policy(UserName=self.name, PolicyName="p0", PolicyDocument=document)


def session(gateway: Gateway, made: dict[str, str], version: str = "s3v4") -> Any:
    """boto3 with temporary keys."""
    return boto3.client(
        "s3",
        endpoint_url=gateway.endpoint,
        aws_access_key_id=made["AccessKeyId"],
        aws_secret_access_key=made["SecretAccessKey"],
        aws_session_token=made["SessionToken"],
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, signature_version=version),
    )


def role(iam: Any, user: User, *documents: str) -> str:
    """A role that trusts a user; returns its ARN."""
    name = f"role-{time.time_ns()}-{next(_numbers)}"
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": user.arn}}
    text = json.dumps({"Version": "2012-10-17", "Statement": trust})
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=text)["Role"]
    for number, document in enumerate(documents):
        iam.put_role_policy(RoleName=name, PolicyName=f"p{number}", PolicyDocument=document)
    return str(made["Arn"])


def assume(gateway: Gateway, user: User, arn: str, **more: Any) -> Any:
    return session(gateway, user.sts.assume_role(RoleArn=arn, RoleSessionName="one", **more)["Credentials"])

"""A key's last use, from a request of any service to GetAccessKeyLastUsed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.unit.s3.test_fast_path import OTHER, ROOT, Two, two

pytestmark = pytest.mark.slow
CLIENTS: list[Any] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the clients, whose sockets would else be closed by the garbage collector."""
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def client(gateway: Two, service: str, key: str, secret: str, token: str | None = None) -> Any:
    made = boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{gateway.fast}",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),  # our keys may be short
    )
    CLIENTS.append(made)
    return made


async def test_last_uses_of_keys_and_roles(tmp_path: Path) -> None:
    async with two(tmp_path) as gateway:
        uses = gateway.app._services.key_uses
        iam = client(gateway, "iam", ROOT.access, ROOT.secret)

        def make() -> tuple[str, str]:
            iam.create_user(UserName="ann")
            made = iam.create_access_key(UserName="ann")["AccessKey"]
            return made["AccessKeyId"], made["SecretAccessKey"]

        async def last_used(key: str) -> dict[str, Any]:
            await uses.flush()
            found: dict[str, Any] = await asyncio.to_thread(iam.get_access_key_last_used, AccessKeyId=key)
            return found

        key, secret = await asyncio.to_thread(make)
        found = await last_used(key)
        assert found["UserName"] == "ann"
        assert found["AccessKeyLastUsed"] == {"ServiceName": "N/A", "Region": "N/A"}
        with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
            await asyncio.to_thread(client(gateway, "s3", key, "wrong").list_buckets)
        assert "LastUsedDate" not in (await last_used(key))["AccessKeyLastUsed"], "an attempt is no use"

        with pytest.raises(ClientError, match="AccessDenied"):  # but a refused request is one, as on AWS
            await asyncio.to_thread(client(gateway, "s3", key, secret).list_buckets)
        found = (await last_used(key))["AccessKeyLastUsed"]
        assert (found["ServiceName"], found["Region"]) == ("s3", "us-east-1")
        await asyncio.sleep(1)
        sts = client(gateway, "sts", key, secret)
        await asyncio.to_thread(sts.get_caller_identity)
        later = (await last_used(key))["AccessKeyLastUsed"]
        assert later["ServiceName"] == "sts"
        assert later["LastUsedDate"] > found["LastUsedDate"]

        own = await last_used(ROOT.access)
        assert "UserName" not in own
        assert own["AccessKeyLastUsed"]["ServiceName"] == "iam"
        for unknown in (OTHER.access, "AKIANOTHERE234567"):  # another account's is none of ours
            with pytest.raises(ClientError, match="NoSuchEntity"):
                await last_used(unknown)

        trust = (
            '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"*"}}}'
        )
        role = (await asyncio.to_thread(iam.create_role, RoleName="reader", AssumeRolePolicyDocument=trust))["Role"]
        assert (await asyncio.to_thread(iam.get_role, RoleName="reader"))["Role"]["RoleLastUsed"] == {}
        given = await asyncio.to_thread(sts.assume_role, RoleArn=role["Arn"], RoleSessionName="one")
        temporary = given["Credentials"]
        keys = temporary["AccessKeyId"], temporary["SecretAccessKey"], temporary["SessionToken"]
        await asyncio.to_thread(client(gateway, "sts", *keys).get_caller_identity)
        await uses.flush()
        used = (await asyncio.to_thread(iam.get_role, RoleName="reader"))["Role"]["RoleLastUsed"]
        assert used["Region"] == "us-east-1"
        assert used["LastUsedDate"] >= later["LastUsedDate"]


async def test_the_fast_path_notes_uses_and_the_end_writes_them(tmp_path: Path) -> None:
    async with two(tmp_path) as gateway:
        s3, services = client(gateway, "s3", *ROOT), gateway.app._services
        await asyncio.to_thread(s3.create_bucket, Bucket="bucket")
        await services.key_uses.flush()
        assert not services.key_uses.recent
        await asyncio.to_thread(s3.head_bucket, Bucket="bucket")
        assert list(services.key_uses.recent) == [ROOT.access]
    assert not services.key_uses.recent

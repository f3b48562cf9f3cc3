"""Two gateways on two mounts of one export that share no cache: what one acknowledges, the other has at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from tests.reliability.crash.ledger import described
from tests.reliability.nfs.mounts import APART, HASTY, mounted
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.places import Place
from tests.support.postgres import running

ROUNDS = sized(ci=40, soak=2000)
SIZES = (0, 1, 4000, 40_000, 300_000, 3_000_000)
BUCKET = "shared"
RETRIES = {"total_max_attempts": 8, "mode": "standard"}
"""As an application has them: on a busy machine Postgres may answer late in a guest of one processor, which is 503."""
LONG = 24 << 20
CHUNK = 1 << 20


class Pair(NamedTuple):
    """Clients of both gateways, and the store as the first one sees it."""

    first: Any
    second: Any
    store: Path


@pytest.fixture(scope="module", params=APART)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        index = stack.enter_context(running()).fresh()
        clients = []
        for number in range(2):
            where = directory / f"mount{number}"
            mount = stack.enter_context(mounted(where, options=APART[request.param][number]))
            place = Place({"driver": "efs", "path": str(mount / directory.name)})
            env = {**HASTY, "SLUICE_INDEX": index, "SLUICE_RUNTIME_DIR": str(directory / f"run{number}")}
            gateway = stack.enter_context(Gateway(directory / f"data{number}", 1, env=env, place=place))
            clients.append(client(gateway.endpoint, retries=RETRIES))
        clients[0].create_bucket(Bucket=BUCKET)
        yield Pair(clients[0], clients[1], directory / "mount0" / directory.name)
        for number in range(2):
            print((directory / f"data{number}.log").read_text()[-4000:])


def test_the_other_reads_what_one_wrote(pair: Pair) -> None:
    """Put, overwrite and delete by turns; HEAD, GET and the listing of the other follow at once."""
    rng = random.Random(1)
    kept: dict[str, int] = {}
    for number in range(ROUNDS):
        writer, reader = (pair.first, pair.second) if number % 2 else (pair.second, pair.first)
        key = f"key-{rng.randrange(12)}"
        body = rng.randbytes(rng.choice(SIZES))
        writer.put_object(Bucket=BUCKET, Key=key, Body=body)
        kept[key] = len(body)
        assert described(reader.get_object(Bucket=BUCKET, Key=key)["Body"].read()) == described(body)
        assert reader.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == len(body)
        if number % 5 == 4:
            reader.delete_object(Bucket=BUCKET, Key=key)
            del kept[key]
            with pytest.raises(ClientError, match="NoSuchKey"):
                writer.get_object(Bucket=BUCKET, Key=key)
        listed = reader.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        assert {entry["Key"]: entry["Size"] for entry in listed} == kept


def test_a_long_read_outlives_a_delete_by_the_other(pair: Pair) -> None:
    """Elsewhere on NFS a reader gets ESTALE then; here a blob goes when nobody reads it any more."""
    body = random.Random(2).randbytes(LONG)
    pair.first.put_object(Bucket=BUCKET, Key="long", Body=body)
    stream = pair.second.get_object(Bucket=BUCKET, Key="long")["Body"]
    found = stream.read(CHUNK)
    pair.first.delete_object(Bucket=BUCKET, Key="long")
    for number in range(20):
        pair.first.put_object(Bucket=BUCKET, Key="busy", Body=b"x" * number)
    assert described(found + stream.read()) == described(body)


def test_nothing_is_renamed_for_an_open_descriptor(pair: Pair) -> None:
    """No `.nfs…` is left of what was deleted: no descriptor is held when a file is unlinked."""
    for number in range(10):
        pair.first.put_object(Bucket=BUCKET, Key="gone", Body=bytes([number]) * 300_000)
        pair.second.get_object(Bucket=BUCKET, Key="gone")["Body"].read()
    pair.second.delete_object(Bucket=BUCKET, Key="gone")
    assert list((pair.store / "data").glob("*/.nfs*")) == []

"""A long GET through one gateway while another discards and compacts what it reads: whole and right."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sluice_s3.app.index.postgres.heartbeat import CUT_LIMITS
from tests.reliability.cluster.site import BUCKET, LIMIT, Cluster, cluster
from tests.reliability.lab.proxy import Proxy
from tests.support.environment import sized
from tests.support.raw_http import Client, Connection, make_request

LARGE = sized(ci=24 << 20, soak=256 << 20)
PART = 5 << 20
SMALL = 8000


@contextmanager
def slow_get(found: Cluster, gateway: int, key: str, size: int) -> Iterator[Connection]:
    """A GET of so many bytes that nobody reads yet: sockets hold some hundred kilobytes of them."""
    url = found.s3(gateway).generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": key})
    with Client(url) as client:
        client.begin(make_request("GET", url))
        head = client.connection.head()
        assert (head.status, head.headers["content-length"]) == (200, str(size))
        yield client.connection


def read_slowly(reading: Connection, size: int, seconds: float) -> None:
    """Take so many bytes in so many seconds."""
    for _ in range(0, size, SMALL):
        reading.take(SMALL)
        time.sleep(SMALL * seconds / size)


def queued(found: Cluster) -> int:
    return int(found.sql("SELECT count(*) FROM discards"))


def test_what_is_being_read_stays(shared: Cluster) -> None:
    """One file, and an object of parts with small ones in packs: deleted elsewhere while they are read."""
    s3 = shared.s3(1)
    shared.wait_until(lambda: queued(shared) == 0, "nothing waits from before")
    body = hashlib.sha256(b"large").digest() * (LARGE // 32)
    s3.put_object(Bucket=BUCKET, Key="long/file", Body=body)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="long/parts")["UploadId"]
    parts, whole = [], b""
    for number in range(1, LARGE // PART + 1):
        piece = bytes([number]) * (PART if number <= LARGE // PART - 1 else SMALL)
        etag = s3.upload_part(Bucket=BUCKET, Key="long/parts", UploadId=upload, PartNumber=number, Body=piece)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
        whole += piece
    s3.complete_multipart_upload(Bucket=BUCKET, Key="long/parts", UploadId=upload, MultipartUpload={"Parts": parts})
    reading = slow_get(shared, 2, "long/file", len(body)), slow_get(shared, 2, "long/parts", len(whole))
    with reading[0] as first, reading[1] as second:
        time.sleep(1)
        for key in ("long/file", "long/parts"):
            shared.s3(0).delete_object(Bucket=BUCKET, Key=key)
        time.sleep(10)  # longer than anything waits that no request holds back
        assert queued(shared) > 0, "what is being read waits"
        assert first.take(len(body)) == body
        assert second.take(len(whole)) == whole
    shared.wait_until(lambda: queued(shared) == 0, "it goes once nobody reads it")


def test_a_gateway_that_loses_the_index_reads_on_and_then_cuts(tmp_path: Path) -> None:
    """It is declared dead and reads what another deletes: on NFS an open file goes, too. That waits for its cut."""
    with cluster(tmp_path, gateways=2, workers=1) as found, ExitStack() as stack:
        proxy = Proxy(found.postgres.socket)
        stack.callback(proxy.close)
        gateway = found.gateways[1]
        gateway.stop()
        gateway.env["SLUICE_INDEX"] = f"postgresql://sluice@127.0.0.1:{proxy.port}/{found.database}"
        gateway.start()
        body = hashlib.sha256(b"file").digest() * (LARGE // 32)
        found.s3(0).put_object(Bucket=BUCKET, Key="file", Body=body)
        quick, slow = (stack.enter_context(slow_get(found, 1, "file", len(body))) for _ in range(2))
        lost_at = time.monotonic()
        proxy.cut()
        found.s3(0).delete_object(Bucket=BUCKET, Key="file")
        dead = "SELECT count(*) FROM writers WHERE state = 'dead'"
        found.wait_until(lambda: found.sql(dead) == "1", "it is declared dead")
        time.sleep(4)  # longer than the others need to remove what nothing holds
        if time.monotonic() - lost_at < (CUT_LIMITS - 1) * LIMIT:
            assert quick.take(len(body)) == body
        assert queued(found) > 0, "what it reads waits"
        with pytest.raises(OSError):
            read_slowly(slow, len(body), 4 * CUT_LIMITS * LIMIT)
        assert time.monotonic() - lost_at >= (CUT_LIMITS - 1) * LIMIT
        found.wait_until(lambda: queued(found) == 0, "it goes once it was cut")
        proxy.mend()


def test_records_that_move_are_read_whole(shared: Cluster) -> None:
    """Small objects through one gateway, while others delete their neighbours and compact their packs."""
    s3 = [shared.s3(number) for number in range(3)]
    bodies = {f"moving/{number}": bytes([number % 251]) * SMALL for number in range(600)}
    for number, (key, body) in enumerate(bodies.items()):
        s3[number % 2].put_object(Bucket=BUCKET, Key=key, Body=body)
    packs = int(shared.sql("SELECT count(*) FROM packs WHERE sealed = 1"))
    kept = list(bodies)[::5]
    for number, key in enumerate(bodies):
        if number % 5:
            s3[number % 2].delete_object(Bucket=BUCKET, Key=key)
    left, rounds, began = packs, 0, time.monotonic()
    while rounds < sized(3, 100) or left == packs:
        assert time.monotonic() < began + sized(60, 300), "none was compacted meanwhile"
        for key in kept:
            assert s3[2].get_object(Bucket=BUCKET, Key=key)["Body"].read() == bodies[key]
        rounds += 1
        left = int(shared.sql("SELECT count(*) FROM packs WHERE sealed = 1"))
    print(f"{rounds} rounds over {len(kept)} objects; full packs {packs} before, {left} after")
    assert left < packs
    for key in kept:
        assert s3[2].get_object(Bucket=BUCKET, Key=key)["Body"].read() == bodies[key]

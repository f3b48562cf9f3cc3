"""The gateway under attack: who may speak to it, what lies in it, and what must still be there afterwards."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tests.integration.negative.checks import Watch, xml
from tests.support.environment import ROOT
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.raw_http import Answer, Connection, Request
from tests.support.signing import Key, Signed, Way, presign, sign_full
from tests.support.waiting import eventually

GROUND = "ground"
"""The first account's bucket, in which nothing may change."""
OTHERS = "others"
"""The other account's bucket, likewise."""
SMALL = b"hello world"
LARGE = bytes(range(256)) * 1200
SECRET_BODY = b"what only its owner may read"
CLIMBING = ["..", "../x", "a/../../b", "../../etc/passwd", "a/b/../../../c", "/..", "//../x", "./..", "..//", "a/../.."]
"""Read left to right their `..` segments outnumber the real ones."""
State = dict[str, Any]
ROOT_KEY = Key(ACCESS_KEY, SECRET_KEY)
OTHER_KEY = Key("OTHERKEY", "other-secret-0123456789")


def path_of(bucket: str, key: str = "") -> str:
    """The path of a bucket or key, escaped as SDKs do it."""
    return f"/{bucket}/{quote(key, safe='/-._~')}" if key else f"/{bucket}"


def put(bucket: str, key: str, body: bytes = b"evil", **fields: str) -> Request:
    """A PutObject; underscores in names of fields stand for dashes."""
    headers = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return Request("PUT", path_of(bucket, key), headers=headers, body=body)


def content_md5(body: bytes) -> tuple[str, str]:
    return "content-md5", base64.b64encode(md5(body, usedforsecurity=False).digest()).decode()


def delete_many(bucket: str, *keys: str) -> Request:
    """A DeleteObjects."""
    body = xml("Delete", "".join(f"<Object><Key>{key}</Key></Object>" for key in keys))
    return Request("POST", path_of(bucket), "delete", (content_md5(body),), body)


@dataclass
class Site:
    """A running gateway with two accounts, each with a bucket of its own."""

    gateway: Gateway
    root: Key = ROOT_KEY
    other: Key = OTHER_KEY
    upload: str = ""
    """An open upload in the first account's bucket, key `keep/upload`, part 1 uploaded."""
    others_upload: str = ""
    fresh_buckets: int = 0
    before: State | None = None
    """Its state after the last test that left it as it was: that before the next one."""

    def __post_init__(self) -> None:
        self.host = self.gateway.endpoint.removeprefix("http://")
        name, _, port = self.host.rpartition(":")
        self.address = (name, int(port))
        self.data: Path = self.gateway.data
        forbidden = (SECRET_KEY, self.other.secret, str(self.data), str(self.data.parent), str(ROOT))
        self.watch = Watch(tuple(text.encode() for text in forbidden))

    # asking
    def connect(self) -> Connection:
        return Connection(self.address, self.watch.look)

    def way(self, **changes: Any) -> Way:
        return Way(**{"host": self.host, **changes})

    def sign(self, request: Request, key: Key | None = None, **way: Any) -> Request:
        """Sign in the header."""
        return self.signed(request, key, **way).request

    def signed(self, request: Request, key: Key | None = None, **way: Any) -> Signed:
        """Sign in the header, and keep what chunks are signed with."""
        return sign_full(request, key or self.root, self.way(**way))

    def presign(self, request: Request, key: Key | None = None, **options: Any) -> Request:
        """Sign in the query. `expires` and `change` are options of `presign`, all others of `Way`."""
        query = {name: options.pop(name) for name in ("expires", "change") if name in options}
        return presign(request, key or self.root, self.way(**options), **query)

    def ask(self, request: Request) -> Answer:
        """One request on a connection of its own."""
        with self.connect() as connection:
            connection.send(request.wire(self.host))
            return connection.answer(request.method)

    def ask_anything(self, request: Request) -> Answer:
        """The same where the answer may come from another plane than S3's, and so need not be an S3 document."""
        with Connection(self.address, Watch(self.watch.forbidden, s3=False).look) as connection:
            connection.send(request.wire(self.host))
            return connection.answer(request.method)

    def ask_raw(self, data: bytes) -> Answer:
        with self.connect() as connection:
            connection.send(data)
            return connection.answer()

    def refused(self, request: Request, status: int, *codes: str) -> Answer:
        """Ask, and expect a refusal with one of the codes."""
        answer = self.ask(request)
        shown = (request.method, request.target[:300], request.headers, answer)
        assert answer.status == status, shown
        if request.method != "HEAD":
            assert answer.code in codes, shown
        return answer

    def ok(self, request: Request, key: Key | None = None, status: int = 200, **way: Any) -> Answer:
        """Sign, ask, and expect success."""
        answer = self.ask(self.sign(request, key, **way))
        assert answer.status == status, (request.method, request.target[:300], answer)
        return answer

    def get(self, bucket: str, key: str, by: Key | None = None) -> bytes:
        return self.ok(Request("GET", path_of(bucket, key)), by).body

    # what lies in it
    def build(self) -> None:
        """Make the accounts' buckets with their objects and uploads."""
        added = ("--access-key", self.other.access, "--secret-key", self.other.secret, "--id", "other-id")
        self.gateway.run("user", "add", *added)
        self.fill()
        self.upload = self.begin(GROUND, "keep/upload", parts=(b"part one",))
        self.others_upload = self.begin(OTHERS, "secret", self.other, parts=(b"part one",))

    def fill(self) -> None:
        self.ok(Request("PUT", path_of(GROUND)))
        self.ok(put(GROUND, "keep/small", SMALL, x_amz_meta_color="blue", content_type="text/plain"))
        self.ok(put(GROUND, "keep/large", LARGE))
        self.ok(Request("PUT", path_of(OTHERS)), self.other)
        self.ok(put(OTHERS, "secret", SECRET_BODY), self.other)

    def begin(self, bucket: str, key: str, by: Key | None = None, parts: tuple[bytes, ...] = ()) -> str:
        """Start an upload and put parts 1 and so on; returns its id."""
        made = self.ok(Request("POST", path_of(bucket, key), "uploads"), by)
        upload_id = made.all("UploadId")[0]
        for number, body in enumerate(parts, 1):
            query = f"partNumber={number}&uploadId={upload_id}"
            self.ok(Request("PUT", path_of(bucket, key), query, body=body), by)
        return upload_id

    def fresh(self) -> str:
        """A new empty bucket, which a test may fill."""
        self.fresh_buckets += 1
        name = f"fresh-{self.fresh_buckets}"
        self.ok(Request("PUT", path_of(name)))
        return name

    def keys(self, bucket: str, by: Key | None = None) -> list[str]:
        """The keys of a bucket, as ListObjectsV2 has them."""
        listed = self.ok(Request("GET", path_of(bucket), "encoding-type=url&list-type=2"), by)
        return [unquote(text) for text in listed.all("Key")]

    def blobs(self) -> set[str]:
        """Names of the files that hold a large body each; small ones are records of packs, which only grow."""
        return {path.name for path in (self.data / "data").glob("*/*") if not path.suffix}

    def state(self) -> State:
        """Everything that refused requests must leave as it is."""
        found: State = {"blobs": self.blobs(), "fresh": self.fresh_buckets}
        for by, bucket in ((self.root, GROUND), (self.other, OTHERS)):
            buckets = self.ok(Request("GET", "/"), by).all("Name")
            found[by.access] = [name for name in buckets if not name.startswith("fresh-")]
            for key in self.keys(bucket, by):
                answer = self.ok(Request("GET", path_of(bucket, key)), by)
                kept = {name: value for name, value in answer.headers.items() if name not in VARYING}
                found[f"{bucket}/{key}"] = (kept, len(answer.body), sha256(answer.body).hexdigest())
            uploads = self.ok(Request("GET", path_of(bucket), "uploads"), by)
            for key, upload_id in zip(uploads.all("Key"), uploads.all("UploadId"), strict=True):
                parts = self.ok(Request("GET", path_of(bucket, key), f"uploadId={upload_id}"), by)
                found[f"{key}?{upload_id}"] = list(zip(parts.all("PartNumber"), parts.all("ETag"), strict=True))
        return found

    def unchanged(self, before: State) -> State | None:
        """Fail unless all is as it was: every bucket, object, header, upload and part, and no new file of data.

        Returns the state that it is in, unless files of data are still on their way.
        """
        after = self.state()
        new = after["blobs"] - before["blobs"]
        fixed = [{key: value for key, value in state.items() if key not in GROWING} for state in (before, after)]
        assert fixed[1] == fixed[0]
        if after["fresh"] > before["fresh"]:  # what lies in a fresh bucket is data too
            return None
        if new:  # a writer whose client went away cleans up behind the answer
            eventually(lambda: not self.blobs() - before["blobs"], "no refused request leaves data behind")
            return None
        return after

    # what an attacker would do
    def attacks(self, bucket: str = GROUND) -> list[Request]:
        """Unsigned requests that would each change or show something, were they let in."""
        upload = self.upload if bucket == GROUND else self.others_upload
        name = "keep/small" if bucket == GROUND else "secret"
        held = "keep/upload" if bucket == GROUND else "secret"
        part = xml("CompleteMultipartUpload", f"<Part><PartNumber>1</PartNumber><ETag>{PART_ETAG}</ETag></Part>")
        key = path_of(bucket, name)
        return [
            put(bucket, "evil"),
            put(bucket, name),
            Request("GET", key),
            Request("HEAD", key),
            Request("DELETE", key),
            delete_many(bucket, name),
            put(bucket, "evil-copy", b"", x_amz_copy_source=f"/{bucket}/{name}"),
            Request("GET", path_of(bucket)),
            Request("POST", path_of(bucket, "evil"), "uploads"),
            Request("PUT", path_of(bucket, held), f"partNumber=1&uploadId={upload}", body=b"evil"),
            Request("GET", path_of(bucket, held), f"uploadId={upload}"),
            Request("POST", path_of(bucket, held), f"uploadId={upload}", body=part),
            Request("DELETE", path_of(bucket, held), f"uploadId={upload}"),
            Request("DELETE", path_of(bucket)),
        ]


PART_ETAG = md5(b"part one", usedforsecurity=False).hexdigest()
GROWING = ("blobs", "fresh")
"""Of a state: what requests to fresh buckets add to."""
VARYING = ("date", "x-amz-request-id", "x-amz-id-2")

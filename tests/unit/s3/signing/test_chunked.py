"""aws-chunked bodies: AWS's published examples, every split, and reliability tests B."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures.chunked import MAX_LINE, ChunkedDecoder
from sluice_s3.app.s3.auth.signatures.request_signature import ChunkSigner
from tests.support import signing
from tests.support.raw_http import Request
from tests.support.signing import Signed

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TIME = "20130524T000000Z"
SCOPE = "20130524/us-east-1/s3/aws4_request"
SEED = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
TRAILER_SEED = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"

# "Example Calculations", sigv4-streaming and sigv4-streaming-trailers, Amazon S3 API Reference: 65 KiB of "a"
A64K = b"a" * 65536
AWS_BODY = b"".join([
    b"10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n", A64K, b"\r\n",
    b"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n", b"a" * 1024, b"\r\n",
    b"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
])  # fmt: skip
AWS_TRAILER_BODY = b"".join([
    b"10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n", A64K, b"\r\n",
    b"400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n", b"a" * 1024, b"\r\n",
    b"0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n",
    b"x-amz-checksum-crc32c:sOO8/Q==\r\n",
    b"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n",
])  # fmt: skip


def signer(seed: str = SEED) -> ChunkSigner:
    return ChunkSigner(SECRET, "20130524", "us-east-1", TIME, seed)


def signed_body(chunks: Iterable[bytes], trailers: tuple[tuple[str, str], ...] = (), seed: str = SEED) -> list[bytes]:
    """The chunks of a signed body, each with its head and line end, and last the trailers."""
    signed = Signed(Request("PUT", "/"), signing.signing_key(SECRET, SCOPE), TIME, SCOPE, seed)
    parts = signing.chunks_of(signed, list(chunks))
    tail = "".join(f"{name}:{value}\r\n" for name, value in trailers)
    if trailers:
        last = parts[-1].extension.rpartition("=")[2]
        lines = "".join(f"{name}:{value}\n" for name, value in trailers)
        tail += f"x-amz-trailer-signature:{signing.trailer_signature(signed, last, lines)}\r\n"
    return [*(part.wire() for part in parts), tail.encode() + b"\r\n"]


def unsigned_body(chunks: Iterable[bytes], trailers: tuple[tuple[str, str], ...] = ()) -> bytes:
    data = b"".join(f"{len(chunk):X}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return data + b"0\r\n" + b"".join(f"{name}:{value}\r\n".encode() for name, value in trailers) + b"\r\n"


def decode(
    body: bytes, length: int, *, names: tuple[str, ...] = (), by: ChunkSigner | None = None, step: int | None = None
) -> tuple[bytes, dict[str, str]]:
    decoder = ChunkedDecoder(signer=by, decoded_length=length, trailer_names=names)
    step = step or len(body) or 1
    data = b"".join(
        bytes(piece) for start in range(0, len(body), step) for piece in decoder.feed(body[start : start + step])
    )
    decoder.finish()
    return data, decoder.trailers


def test_the_published_example_of_signed_chunks() -> None:
    assert decode(AWS_BODY, 66560, by=signer()) == (b"a" * 66560, {})


def test_the_published_example_of_a_signed_trailer() -> None:
    names = ("x-amz-checksum-crc32c",)
    data, trailers = decode(AWS_TRAILER_BODY, 66560, names=names, by=signer(TRAILER_SEED))
    assert data == b"a" * 66560
    assert trailers == {"x-amz-checksum-crc32c": "sOO8/Q=="}


def test_an_empty_line_before_the_trailer_signature_is_allowed() -> None:
    body = AWS_TRAILER_BODY.replace(b"sOO8/Q==\r\n", b"sOO8/Q==\n\r\n")
    assert decode(body, 66560, names=("x-amz-checksum-crc32c",), by=signer(TRAILER_SEED))[0] == b"a" * 66560


@pytest.mark.parametrize("size", [0, 1, 8191, 8192])
def test_bodies_of_one_chunk(size: int) -> None:
    chunks = [b"x" * size] if size else []
    assert decode(b"".join(signed_body(chunks)), size, by=signer())[0] == b"x" * size
    assert decode(unsigned_body(chunks), size)[0] == b"x" * size


CRC = (("x-amz-checksum-crc32", "AAAAAA=="),)
SMALL_SIGNED = b"".join(signed_body([b"some data"], CRC))
SMALL_UNSIGNED = unsigned_body([b"so", b"me da", b"ta"], CRC)


@pytest.mark.parametrize("position", range(len(SMALL_SIGNED) + 1))
def test_a_signed_body_cut_in_two_anywhere(position: int) -> None:
    decoder = ChunkedDecoder(signer=signer(), decoded_length=9, trailer_names=("x-amz-checksum-crc32",))
    pieces = decoder.feed(SMALL_SIGNED[:position]) + decoder.feed(SMALL_SIGNED[position:])
    decoder.finish()
    assert b"".join(pieces) == b"some data"
    assert decoder.trailers == dict(CRC)


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 16, 63, 64])
def test_bodies_in_steps(step: int) -> None:
    names = ("x-amz-checksum-crc32",)
    assert decode(SMALL_SIGNED, 9, names=names, by=signer(), step=step) == (b"some data", dict(CRC))
    assert decode(SMALL_UNSIGNED, 9, names=names, step=step) == (b"some data", dict(CRC))


@given(st.lists(st.binary(min_size=1, max_size=40)), st.lists(st.integers(0, 400), max_size=12))
def test_any_chunks_cut_anywhere(chunks: list[bytes], cuts: list[int]) -> None:
    body = unsigned_body(chunks, CRC)
    decoder = ChunkedDecoder(signer=None, decoded_length=sum(map(len, chunks)), trailer_names=("x-amz-checksum-crc32",))
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [bytes(piece) for start, stop in itertools.pairwise(edges) for piece in decoder.feed(body[start:stop])]
    decoder.finish()
    assert b"".join(pieces) == b"".join(chunks)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_garbage_raises_only_s3_errors_and_the_same_at_any_step(body: bytes, step: int) -> None:
    def outcome(step: int | None) -> object:
        try:
            return decode(body, 64, step=step)
        except errors.S3Error as error:
            return type(error)

    assert outcome(step) == outcome(None)


@given(st.data())
def test_one_changed_byte_of_a_signed_body_never_passes(data: st.DataObject) -> None:
    body = bytearray(SMALL_SIGNED)
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] ^= data.draw(st.integers(1, 255))
    try:
        result = decode(bytes(body), 9, names=("x-amz-checksum-crc32",), by=signer())
    except errors.S3Error:
        return
    # blanks around a trailer's value, the case of its name and the CR of its line end are not signed
    assert result == (b"some data", dict(CRC))


DATA = [b"a" * 8192, b"b" * 8192, b"c" * 100]
LENGTH = sum(map(len, DATA))


@pytest.mark.parametrize("chunk", [0, 1, 2, 3])
def test_b21_a_wrong_chunk_signature(chunk: int) -> None:
    head, _, rest = signed_body(DATA)[chunk].partition(b"=")
    flipped = head + b"=" + (b"1" if rest[:1] == b"0" else b"0") + rest[1:]
    parts = signed_body(DATA)
    parts[chunk] = flipped
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(b"".join(parts), LENGTH, by=signer())


def test_b21_changed_data() -> None:
    parts = signed_body(DATA)
    parts[1] = parts[1].replace(b"bbbb", b"bbxb", 1)
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(b"".join(parts), LENGTH, by=signer())


@pytest.mark.parametrize("order", [(1, 0, 2, 3, 4), (0, 2, 3, 4), (0, 0, 1, 2, 3, 4), (2, 3, 4)])
def test_b22_chunks_reordered_dropped_or_duplicated(order: tuple[int, ...]) -> None:
    parts = signed_body([b"a" * 8192, b"b" * 8192, b"c" * 8192])
    body = b"".join(parts[number] for number in order)
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(body, 3 * 8192, by=signer())


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
def test_b23_a_body_that_ends_early(kept: int) -> None:
    body = b"".join(signed_body(DATA)[:kept])
    with pytest.raises(errors.IncompleteBody):
        decode(body, LENGTH, by=signer())


@pytest.mark.parametrize("end", range(len(SMALL_UNSIGNED)))
def test_b23_an_unsigned_body_that_ends_early(end: int) -> None:
    with pytest.raises((errors.IncompleteBody, errors.MalformedTrailerError)):
        decode(SMALL_UNSIGNED[:end], 9, names=("x-amz-checksum-crc32",))


def test_b24_chunks_that_follow_another_seed() -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(b"".join(signed_body(DATA, seed="0" * 64)), LENGTH, by=signer())


@pytest.mark.parametrize("length", [0, LENGTH - 1, LENGTH + 1, 2**62])
@pytest.mark.parametrize("signed", [True, False])
def test_b25_another_decoded_length(length: int, signed: bool) -> None:
    body = b"".join(signed_body(DATA)) if signed else unsigned_body(DATA)
    with pytest.raises(errors.IncompleteBody):
        decode(body, length, by=signer() if signed else None)


@pytest.mark.parametrize(
    "size",
    [b"", b"g", b"0x5", b"+5", b"-5", b" 5", b"5 ", b"00000000000000005", b"5;a=b", b"5;chunk-signature=" + b"0" * 64],
)
def test_b26_malformed_sizes(size: bytes) -> None:
    with pytest.raises(errors.IncompleteBody):
        decode(size + b"\r\nhello\r\n0\r\n\r\n", 5)


@pytest.mark.parametrize(
    "head", [b"5", b"5;", b"5;chunk-signature", b"5;signature=0", b"5; chunk-signature=" + b"0" * 64]
)
def test_b26_a_signed_chunk_without_signature(head: bytes) -> None:
    with pytest.raises(errors.IncompleteBody):
        decode(head + b"\r\nhello\r\n", 5, by=signer())


def test_b26_an_empty_chunk_signature() -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(b"5;chunk-signature=\r\nhello\r\n", 5, by=signer())


def test_b26_an_endless_head_is_refused_early() -> None:
    decoder = ChunkedDecoder(signer=None, decoded_length=5)
    decoder.feed(b"0" * (MAX_LINE - 1))
    with pytest.raises(errors.IncompleteBody):
        decoder.feed(b"0")


def test_b27_a_short_signed_chunk_that_is_not_the_last() -> None:
    body = b"".join(signed_body([b"a" * 8191, b"b" * 8192]))
    with pytest.raises(errors.InvalidChunkSizeError):
        decode(body, 8191 + 8192, by=signer())


@pytest.mark.parametrize(
    ("trailers", "names"),
    [
        (CRC, ()),
        ((), ("x-amz-checksum-crc32",)),
        (CRC, ("x-amz-checksum-crc32c",)),
        (CRC + CRC, ("x-amz-checksum-crc32",)),
        (CRC, ("x-amz-checksum-crc32", "x-amz-checksum-sha1")),
    ],
)
def test_b28_trailers_not_as_announced(trailers: tuple[tuple[str, str], ...], names: tuple[str, ...]) -> None:
    with pytest.raises(errors.MalformedTrailerError):
        decode(unsigned_body([b"x"], trailers), 1, names=names)
    with pytest.raises(errors.MalformedTrailerError):
        decode(b"".join(signed_body([b"x"], trailers)), 1, names=names, by=signer())


def test_b28_a_wrong_trailer_signature() -> None:
    body = SMALL_SIGNED.replace(b"AAAAAA==", b"AAAABB==")
    with pytest.raises(errors.SignatureDoesNotMatch):
        decode(body, 9, names=("x-amz-checksum-crc32",), by=signer())


def test_b28_a_signed_body_without_trailer_signature() -> None:
    body, _, _ = SMALL_SIGNED.partition(b"x-amz-trailer-signature")
    with pytest.raises(errors.MalformedTrailerError):
        decode(body + b"\r\n", 9, names=("x-amz-checksum-crc32",), by=signer())


def test_b28_a_trailer_after_the_signature() -> None:
    body = SMALL_SIGNED[:-2] + b"x-amz-checksum-sha1:AAAA\r\n\r\n"
    with pytest.raises(errors.MalformedTrailerError):
        decode(body, 9, names=("x-amz-checksum-crc32", "x-amz-checksum-sha1"), by=signer())


def test_b28_endless_trailers_are_refused_early() -> None:
    names = tuple(f"t{number}" for number in range(100))
    body = unsigned_body([b"x"], tuple((name, "v" * 500) for name in names))
    with pytest.raises(errors.MalformedTrailerError):
        decode(body, 1, names=names)


MINIO_GO = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:mnG7TA==\n\r\n\r\n"


@pytest.mark.parametrize("step", [1, 2, 100])
@pytest.mark.parametrize("body", [MINIO_GO, MINIO_GO[:-2]])
def test_an_unsigned_trailer_of_minio_go(body: bytes, step: int) -> None:
    names = ("x-amz-checksum-crc32c",)
    assert decode(body, 5, names=names, step=step) == (b"hello", {names[0]: "mnG7TA=="})
    for longer in (MINIO_GO + b"\r", MINIO_GO.replace(b"=\n", b"=\r\n")):
        with pytest.raises(errors.InvalidRequest):
            decode(longer, 5, names=names, step=step)


@pytest.mark.parametrize("more", [b"x", b"\r\n", b"0\r\n\r\n", SMALL_UNSIGNED])
def test_b32_data_after_the_end(more: bytes) -> None:
    with pytest.raises(errors.InvalidRequest):
        decode(SMALL_UNSIGNED + more, 9, names=("x-amz-checksum-crc32",))
    with pytest.raises(errors.InvalidRequest):
        decode(SMALL_SIGNED + more, 9, names=("x-amz-checksum-crc32",), by=signer())


@pytest.mark.parametrize("end", [b"xx", b"\n", b"\rx\n", b"hello\r\n"])
def test_a_chunk_longer_than_its_size(end: bytes) -> None:
    with pytest.raises(errors.IncompleteBody):
        decode(b"5\r\nhello" + end + b"0\r\n\r\n", 5)


def test_pieces_are_views_of_what_was_fed() -> None:
    data = unsigned_body([b"x" * 100_000])
    (piece,) = ChunkedDecoder(signer=None, decoded_length=100_000).feed(data)
    assert piece.obj is data

"""Limits of requests, connections, bodies and commits: a part of `Settings`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings

KIB = 1024
MIB = 1024 * KIB


class LimitSettings(BaseSettings):
    """Limits of what clients may use. Sizes are bytes and times are seconds."""

    clock_skew: float = Field(900, gt=0, description="How far a signed request's time may be off.")
    keep_alive_timeout: float = Field(75, gt=0, description="An idle connection is closed after this long.")
    header_timeout: float = Field(30, gt=0, description="A request's head must be whole within this time.")
    body_timeout: float = Field(
        60, gt=0, description="A request body, or the reader of an answer, must make progress within this time."
    )
    graceful_timeout: float = Field(
        30, gt=0, description="How long running requests may take to end at a stop or restart."
    )
    stop_delay: float = Field(
        0, ge=0, description="At a stop, readiness is `down` for this long before requests are refused: for balancers."
    )
    request_max_age: float = Field(86_400, gt=0, description="A request older than this is cut off.")
    max_header_bytes: int = Field(64 * KIB, ge=4 * KIB, description="Bytes of a request's head.")
    max_headers: int = Field(200, ge=20, description="Number of a request's header fields.")
    max_connections: int = Field(4096, ge=1, description="Connections a worker holds; past them `SlowDown`.")
    max_requests: int = Field(1024, ge=1, description="Requests a worker runs at once; past them `SlowDown`.")
    requests_per_second: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Requests a second of each account, by all workers; past them `SlowDown`. A second's worth may "
        "come at once. 0: no bound.",
    )
    anonymous_requests_per_second: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="The same of each client address (see `TRUSTED_PROXIES`) that signs nothing.",
    )
    max_body_memory: int = Field(
        96 * MIB,
        ge=4 * MIB,
        description="Bytes of request bodies a worker holds in memory; past them readers wait, then `SlowDown`.",
    )
    max_put: int = Field(5 * 1024 * MIB, ge=MIB, description="Bytes of one PutObject or UploadPart.")
    max_buckets: int = Field(10_000, ge=1, description="Buckets an account may have.")
    commit_timeout: float = Field(20, gt=0, description="A change waits this long for the index, then `SlowDown`.")
    commit_queue: int = Field(10_000, ge=1, description="Changes a worker queues for the index; past them `SlowDown`.")
    body_grace: float = Field(
        30, ge=0, description="How long the gateway waits for a request body before `BODY_MIN_RATE` holds."
    )
    body_min_rate: int = Field(
        1024,
        ge=0,
        description="Bytes of a request body that must come on average for each second of waiting beyond `BODY_GRACE`; "
        "0: none. What the gateway itself takes time for does not count.",
    )
    document_timeout: float = Field(
        30, gt=0, description="A document (XML, JSON, IAM) and the fields of a form must be whole within this time."
    )
    max_unauthenticated_bodies: int = Field(
        512,
        ge=1,
        description="Requests whose body a worker reads without knowing who sent them: forms, IAM, what is not signed. "
        "They have places of their own beside `MAX_REQUESTS`; past them `SlowDown`.",
    )
    max_unauthenticated_bodies_per_client: int = Field(
        0, ge=0, description="The same of one client address (see `TRUSTED_PROXIES`); 0: no bound."
    )

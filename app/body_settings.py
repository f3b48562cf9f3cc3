"""Settings for request bodies: a part of `app.settings.Settings`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class BodySettings(BaseSettings):
    """Limits of request bodies. Sizes are bytes and times are seconds."""

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

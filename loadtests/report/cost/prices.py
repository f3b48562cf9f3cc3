"""Prices of a store, as `--cost` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sluice_s3.loadtests.compare.plan import PlanError

STORED_GB = 1000.0
"""GB that are stored where `stored` does not say how many."""
Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Price(BaseModel):
    """What a store costs, in US dollars a month; a GB is 10⁹ bytes. What is not given costs nothing.

    Of provisioned IOPS and MB/s only what is beyond the included ones is paid.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    gb: Amount = Field(0, description="a stored GB")
    stored: Amount = Field(STORED_GB, description="GB that are stored (not a price)")
    month: Amount = Field(0, description="a fixed sum, as of a machine")
    iops: Amount = Field(0, description="a provisioned IOPS")
    iops_provisioned: Amount = Field(0, description="IOPS that are provisioned (not a price)")
    iops_included: Amount = Field(0, description="IOPS that cost nothing (not a price)")
    mbps: Amount = Field(0, description="a provisioned MB/s")
    mbps_provisioned: Amount = Field(0, description="MB/s that are provisioned (not a price)")
    mbps_included: Amount = Field(0, description="MB/s that cost nothing (not a price)")
    put: Amount = Field(0, description="1,000 PUT or LIST")
    get: Amount = Field(0, description="1,000 GET or STAT")
    delete: Amount = Field(0, description="1,000 DELETE")
    read: Amount = Field(0, description="a GB that is read")
    write: Amount = Field(0, description="a GB that is written")
    example: str = Field("", description="the shipped example that this began with")


def names() -> list[str]:
    """Return what a price can name, as `--cost` writes it."""
    return [name.replace("_", "-") for name in Price.model_fields if name != "example"]


def parse_costs(texts: Iterable[str], examples: Mapping[str, Price]) -> dict[str, Price]:
    """Parse `NAME=EXAMPLE`, `NAME=gb=0.08,iops=0.005`, `NAME=EXAMPLE,stored=500`. Raises PlanError."""
    found: dict[str, Price] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not name or not equals or not rest:
            raise PlanError(f"--cost {text!r} is not NAME=EXAMPLE or NAME=PRICE=DOLLARS,… ({_known(examples)})")
        if name in found:
            raise PlanError(f"--cost names {name} twice")
        found[name] = _parse(text, rest, examples)
    return found


def _parse(text: str, rest: str, examples: Mapping[str, Price]) -> Price:
    values: dict[str, Any] = {}
    for number, word in enumerate(rest.split(",")):
        key, equals, value = (one.strip() for one in word.partition("="))
        if not equals and number == 0 and key in examples:
            values = examples[key].model_dump() | {"example": key}
        elif not equals:
            raise PlanError(f"--cost {text!r}: {key!r} is neither an example nor PRICE=DOLLARS ({_known(examples)})")
        elif key not in names():
            raise PlanError(f"--cost {text!r}: there is no price {key!r} ({_known(examples)})")
        else:
            values[key.replace("-", "_")] = value
    try:
        return Price.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanError(f"--cost {text!r}: {str(first['loc'][0]).replace('_', '-')}: {first['msg']}") from None


def _known(examples: Mapping[str, Price]) -> str:
    return f"examples: {', '.join(examples)}; prices: {', '.join(names())}"

"""`sluice audit`: the log of administrative changes, as JSON lines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, load_settings
from sluice_s3.app.cli.opened_index import run_with_index

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.index.audit.rows import AuditFilter

PAGE = 500


def audit_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    since: Annotated[datetime | None, typer.Option(help="From this time on, in the local zone.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Up to this time.")] = None,
    principal: Annotated[str, typer.Option(help="ARN of the caller; `*` and `?` as wildcards here and below.")] = "",
    action: Annotated[str, typer.Option(help="Such as `iam:*`.")] = "",
    resource: Annotated[str, typer.Option(help="ARN or name of what was changed.")] = "",
    outcome: Annotated[str, typer.Option(help="`Success`, a code of an error, or `!Success`.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Events at most.")] = 1000,
) -> None:
    """Print administrative changes, the newest first, one JSON object a line.

    Exit codes: 0 printed, 1 there is no index or it cannot be used.
    """
    from sluice_s3.app.index.audit.rows import AuditFilter

    settings = load_settings(data=data, config=config, index=index)
    bounds = AuditFilter()
    wanted = AuditFilter(
        bounds.since if since is None else int(since.timestamp() * 1000),
        bounds.until if until is None else int(until.timestamp() * 1000),
        principal=principal,
        action=action,
        resource=resource,
        outcome=outcome,
    )
    run_with_index(settings, lambda opened: _print(opened, wanted, limit))


async def _print(index: Index, wanted: AuditFilter, limit: int) -> None:
    import orjson

    from sluice_s3.app.index.audit.rows import render_event

    place = None
    while limit:
        page = await index.audit_events(wanted, place, min(PAGE, limit))
        for event in page.events:
            print(orjson.dumps(render_event(event)).decode())
        limit -= len(page.events)
        place = page.next
        if place is None:
            return

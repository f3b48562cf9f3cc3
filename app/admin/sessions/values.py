"""The condition keys of policies for a request to the admin listener.

"AWS global condition context keys", IAM User Guide.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from fastapi import Request

from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.admin.sessions.origin import client_address, request_origin


def condition_values(request: Request, account_id: str, principal: Principal | None) -> Values:
    """Return the values of a request's condition keys, in lower case; None for absent ones."""
    now = time.time()
    known = {
        "aws:currenttime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(int(now)),
        "aws:principalaccount": account_number(account_id),
        "aws:principalarn": caller_of(account_id).arn if principal is None else principal.arn,
        "aws:principalisawsservice": "false",
        "aws:principaltype": "Account" if principal is None else principal.kind,
        "aws:referer": request.headers.get("referer", ""),
        "aws:securetransport": "true" if request_origin(request).startswith("https:") else "false",
        "aws:sourceip": client_address(request),
        "aws:useragent": request.headers.get("user-agent", ""),
        "aws:userid": account_number(account_id) if principal is None else principal.user_id,
        "aws:username": "" if principal is None else principal.name,
        "aws:viaawsservice": "false",
    }
    return lambda key: (known[key],) if known.get(key) else None

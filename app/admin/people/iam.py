"""IAM and STS for the console, as the caller."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import JsonValue
from starlette.responses import JSONResponse, Response

from sluice_s3.app.access.account import account_number
from sluice_s3.app.access.iam.actions import Call, with_keys
from sluice_s3.app.access.iam.errors import IamError, MalformedInput
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, NAMES, RUN, STS
from sluice_s3.app.access.policy import ALLOWED
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.people.models import IamCall, IamFault
from sluice_s3.app.admin.people.parameters import BadFields, flatten
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.store.regions import FIRST

router = APIRouter(tags=["people"], route_class=StrictRoute)
LIST_ALLOWED = 16 * ALLOWED
"""Steps of the policies for all that a list decides: half a second. The rest is hidden, as if it were denied."""
FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": IamFault, "description": what}
    for status, what in {
        400: "The parameters are not valid.",
        403: "The caller may not do it.",
        404: "What it concerns does not exist.",
        409: "It exists already, is in use, or is one too many.",
        501: "The operation is not there.",
    }.items()
}


def call_of(request: Request, caller: Caller, action: str, parameters: Parameters) -> Call:
    """Return a call by whom the request is from, with the condition keys that the S3 endpoint gives it."""
    settings = request.app.state.settings
    region = FIRST if settings.region == "auto" or action in NAMES[IAM] else settings.region
    values = with_keys(
        caller.values, {"aws:requestedregion": region, "aws:resourceaccount": account_number(caller.account_id)}
    )
    return Call(request.app.state.index, caller.account_id, caller.principal, parameters, values)


@router.post("/iam", responses=FAULTS)
async def call_iam(request: Request, caller: Annotated[Caller, Depends(require())], body: IamCall) -> Response:
    """Run an operation of IAM or STS as the caller, and return AWS's answer as JSON.

    The caller has the rights that it has on the S3 endpoint. A secret is in the answer that makes it, and never again.
    """
    service = STS if body.action in NAMES[STS] else IAM
    return await run_call(service, body.action, body.parameters, partial(call_of, request, caller, body.action))


async def run_call(
    service: str, action: str, parameters: dict[str, JsonValue], make_call: Callable[[Parameters], Call]
) -> Response:
    """Run an operation with parameters as JSON, and return the answer, also for an error of IAM."""
    try:
        return JSONResponse(await RUN[service](action, make_call(Parameters(flatten(parameters)))))
    except BadFields as error:
        return answer_fault(MalformedInput(str(error)))
    except IamError as error:
        return answer_fault(error)


def answer_fault(error: IamError) -> Response:
    """Return the answer for an error."""
    return JSONResponse({"detail": error.text or error.code, "code": error.code}, error.status)

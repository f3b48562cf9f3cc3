"""Users of the first account with few rights."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import urlencode

from tests.integration.negative.site import Site
from tests.support.raw_http import Answer, Request
from tests.support.signing import Key

FORM = ("content-type", "application/x-www-form-urlencoded")
_numbers = itertools.count(1)


def call(site: Site, key: Key | None, service: str, action: str, **parameters: str) -> Answer:
    """An operation of IAM or STS; `__` in a name stands for a dot."""
    named = {name.replace("__", "."): value for name, value in parameters.items()}
    body = urlencode({"Action": action, "Version": "2010-05-08", **named}).encode()
    request = Request("POST", "/", headers=(FORM,), body=body)
    return site.ask_anything(request if key is None else site.sign(request, key, service=service))


def iam(site: Site, action: str, **parameters: str) -> dict[str, Any]:
    """An operation of IAM by the account itself, on the command line."""
    given = [f"{name}={value}" for name, value in parameters.items()]
    found: dict[str, Any] = json.loads(site.gateway.run("iam", site.root.access, action, *given).stdout)
    return found


def policy(*actions: str, resource: Any = "*") -> str:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": statement})


def user_with(site: Site, *actions: str, resource: Any = "*") -> Key:
    """The key of a new user who may do this and no more. The user has the name of the key."""
    first = f"user-{next(_numbers)}"
    iam(site, "CreateUser", UserName=first)
    made = iam(site, "CreateAccessKey", UserName=first)["AccessKey"]
    name = made["AccessKeyId"]
    iam(site, "UpdateUser", UserName=first, NewUserName=name)
    if actions:
        text = policy(*actions, resource=resource)
        iam(site, "PutUserPolicy", UserName=name, PolicyName="p", PolicyDocument=text)
    return Key(name, made["SecretAccessKey"])

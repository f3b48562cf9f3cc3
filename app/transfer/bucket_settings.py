"""Settings of buckets: read at the source, written at the destination where they differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.transfer.attributes import CANNED, groups_of
from sluice_s3.app.transfer.endpoints import Bucket
from sluice_s3.app.transfer.errors import describe, is_fatal, is_not_built, status_of
from sluice_s3.app.transfer.report import Report

Document = dict[str, Any]


class Setting(NamedTuple):
    """A setting: its name, and the operations that read and write it."""

    name: str
    read: str
    write: str
    parameter: str
    """The parameter that writes it."""
    document: Callable[[Document, str, str], Any]
    """Returns the value of that parameter by an answer, and the buckets' names there and here; None for no setting."""
    late: bool = False
    """Written when all versions are there: it would act on them before."""
    usual: Any = None
    """The value of new buckets on AWS, which says nothing to an endpoint without the setting."""


def _field(name: str) -> Callable[[Document, str, str], Any]:
    return lambda answer, _there, _here: answer.get(name)


def _fields(*names: str) -> Callable[[Document, str, str], Any]:
    return lambda answer, _there, _here: {name: answer[name] for name in names if answer.get(name)} or None


def _policy(answer: Document, there: str, here: str) -> str | None:
    policy = answer.get("Policy")
    if not policy:
        return None
    # spelled alike, so that equal policies are equal texts
    text = json.dumps(json.loads(policy), sort_keys=True)
    return text.replace(f"arn:aws:s3:::{there}/", f"arn:aws:s3:::{here}/").replace(
        f'"arn:aws:s3:::{there}"', f'"arn:aws:s3:::{here}"'
    )


def _acl(answer: Document, _there: str, _here: str) -> str | None:
    return CANNED.get(groups_of(answer.get("Grants", []))) or None


def _default_retention(answer: Document, _there: str, _here: str) -> Any:
    configuration = answer.get("ObjectLockConfiguration")
    return configuration if configuration and configuration.get("Rule") else None


def _encryption(answer: Document, _there: str, _here: str) -> Any:
    rules = answer.get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    # a key's name means nothing elsewhere: the destination takes its own
    kept = [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": one["SSEAlgorithm"]}} for one in defaults if one]
    return {"Rules": kept} if kept else None


_OWNER_ENFORCED = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
_ALL_BLOCKED = dict.fromkeys(
    ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
)
SETTINGS = (
    Setting("object ownership", "get_bucket_ownership_controls", "put_bucket_ownership_controls",
            "OwnershipControls", _field("OwnershipControls"), usual=_OWNER_ENFORCED),
    Setting("public access block", "get_public_access_block", "put_public_access_block",
            "PublicAccessBlockConfiguration", _field("PublicAccessBlockConfiguration"), usual=_ALL_BLOCKED),
    Setting("default encryption", "get_bucket_encryption", "put_bucket_encryption",
            "ServerSideEncryptionConfiguration", _encryption),
    Setting("CORS rules", "get_bucket_cors", "put_bucket_cors", "CORSConfiguration", _fields("CORSRules")),
    Setting("tags", "get_bucket_tagging", "put_bucket_tagging", "Tagging", _fields("TagSet")),
    Setting("website", "get_bucket_website", "put_bucket_website", "WebsiteConfiguration",
            _fields("ErrorDocument", "IndexDocument", "RedirectAllRequestsTo", "RoutingRules")),
    Setting("policy", "get_bucket_policy", "put_bucket_policy", "Policy", _policy),
    Setting("ACL", "get_bucket_acl", "put_bucket_acl", "ACL", _acl),
    Setting("lifecycle rules", "get_bucket_lifecycle_configuration", "put_bucket_lifecycle_configuration",
            "LifecycleConfiguration", _fields("Rules"), late=True),
    Setting("default retention", "get_object_lock_configuration", "put_object_lock_configuration",
            "ObjectLockConfiguration", _default_retention, late=True),
)  # fmt: skip
NOT_COPIED = (
    ("notifications", "get_bucket_notification_configuration", (
        "QueueConfigurations", "TopicConfigurations", "LambdaFunctionConfigurations", "EventBridgeConfiguration")),
    ("replication rules", "get_bucket_replication", ("ReplicationConfiguration",)),
    ("access logging", "get_bucket_logging", ("LoggingEnabled",)),
    ("inventories", "list_bucket_inventory_configurations", ("InventoryConfigurationList",)),
)  # fmt: skip
"""Settings that name things which the destination does not have: they are reported, where the source has them."""


def copy_settings(source: Bucket, target: Bucket, report: Report, *, late: bool) -> None:
    """Copy the settings that are due before the versions, or those that are `late`."""
    for setting in SETTINGS:
        if setting.late == late:
            _copy(setting, source, target, report)
    if late:
        return
    for name, operation, fields in NOT_COPIED:
        answer = _read(source, operation)
        if isinstance(answer, dict) and any(answer.get(each) for each in fields):
            report.not_taken(name, "they name things that are not here: set them by hand", source.name)


def _copy(setting: Setting, source: Bucket, target: Bucket, report: Report) -> None:
    answer = _read(source, setting.read)
    if isinstance(answer, str):
        report.not_taken(setting.name, answer, source.name)
        return
    wanted = None if answer is None else setting.document(answer, source.name, target.name)
    if wanted is None:
        return
    present = _read(target, setting.read)
    if isinstance(present, dict) and setting.document(present, target.name, target.name) == wanted:
        return
    try:
        getattr(target.client, setting.write)(Bucket=target.name, **{setting.parameter: wanted})
    except (BotoCoreError, ClientError) as error:
        if is_fatal(error):
            raise
        if wanted != setting.usual:
            report.not_taken(setting.name, describe(error), source.name)
    else:
        report.add("settings")


def _read(bucket: Bucket, operation: str) -> Document | str | None:
    """Return the answer; None when nothing is set or the endpoint lacks it; a text says why it cannot be read."""
    call: Callable[..., Document] = getattr(bucket.client, operation)
    try:
        return call(Bucket=bucket.name)
    except ClientError as error:
        if is_fatal(error):
            raise
        return None if status_of(error) == 404 or is_not_built(error) else describe(error)
    except BotoCoreError as error:
        return describe(error)

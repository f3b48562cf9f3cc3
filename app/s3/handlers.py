"""The modules that register operations in the routing table, one line each."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "acl.operations",
    "buckets.list_buckets",
    "buckets.operations",
    "buckets.policy",
    "buckets.public_access",
    "buckets.request_payment",
    "cors.operations",
    "encryption.operations",
    "inventory.operations",
    "lifecycle.operations",
    "logging.operations",
    "multipart.complete",
    "multipart.listing",
    "multipart.part_copy",
    "multipart.uploads",
    "notifications.operations",
    "object_lock.operations",
    "objects.attributes",
    "objects.copy",
    "objects.delete_objects",
    "objects.listing",
    "objects.post_object",
    "objects.read",
    "objects.rename",
    "objects.write",
    "restore.operations",
    "tagging.operations",
    "versioning.operations",
    "website.operations",
)


def register() -> None:
    """Import every module, which registers its operations. No feature is imported before this call."""
    for name in MODULES:
        import_module(f"sluice_s3.app.s3.{name}")

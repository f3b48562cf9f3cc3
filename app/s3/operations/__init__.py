"""One module for each family of operations; `load` registers them all in the dispatch table."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "service",
    "acl",
    "bucket",
    "policy",
    "public_access",
    "object_read",
    "object_write",
    "post_object",
    "delete_objects",
    "copy",
    "rename",
    "restore",
    "tagging",
    "cors",
    "lifecycle",
    "encryption",
    "request_payment",
    "logging",
    "website",
    "notification",
    "inventory",
    "attributes",
    "listing",
    "versioning",
    "object_lock",
    "multipart",
    "multipart_complete",
    "multipart_listing",
)


def load() -> None:
    """Import every module, which registers its operations."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")

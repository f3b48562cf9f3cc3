"""The methods of features that have files of their own, together."""

from __future__ import annotations

from app.index.delivery_methods import DeliveryMethods
from app.index.identity_methods import IdentityMethods
from app.index.keyring_methods import KeyringMethods
from app.index.lifecycle_methods import LifecycleMethods
from app.index.listing_methods import ListingMethods
from app.index.newest_methods import NewestMethods
from app.index.rewrite_methods import RewriteMethods


class FeatureMethods(
    DeliveryMethods,
    IdentityMethods,
    KeyringMethods,
    LifecycleMethods,
    ListingMethods,
    NewestMethods,
    RewriteMethods,
):
    """A part of `app.index.methods.Methods`."""

"""The settings of the operator: the environment (prefix `SLUICE_`), the command line, and a TOML file."""

from sluice_s3.app.settings.features import NotifyTarget
from sluice_s3.app.settings.settings import ConfigError, Network, Settings, is_index_url
from sluice_s3.app.settings.stores import StoreSettings

__all__ = ["ConfigError", "Network", "NotifyTarget", "Settings", "StoreSettings", "is_index_url"]

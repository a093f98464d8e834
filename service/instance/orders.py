"""What the supervisor tells the processes beside the workers, each in its first line."""

import msgspec

from config.settings import Settings


class WatchOrders(msgspec.Struct, frozen=True, kw_only=True):
    """To the inbox's watcher."""

    settings: Settings
    log_json: bool


class MirrorOrders(msgspec.Struct, frozen=True, kw_only=True):
    """To the mirror of the store of releases."""

    settings: Settings
    log_json: bool
    instance: str  # the id of its instance

"""The errors that the warehouse raises.

WarehouseError
├── DropError
├── CatalogError
│   ├── NeedsNewerError
│   ├── NoReleaseError
│   ├── NoSuchReleaseError
│   └── StoreError
│       └── DamagedError
├── BusyError
│   └── LostRaceError
├── ConflictError
├── FilesHang
├── InboxError
└── LookupFailure
    ├── LookupBusy
    ├── LookupStuck
    └── LookupTimeout
"""


class WarehouseError(Exception):
    """Base of all errors here. The message is one line for the user of a command."""


class DropError(WarehouseError):
    """The paths are not a readable drop."""


class CatalogError(WarehouseError):
    """A release is unknown, damaged, or cannot be written."""


class NoReleaseError(CatalogError):
    """No release has been published yet."""


class NoSuchReleaseError(CatalogError):
    """No release has this id."""


class NeedsNewerError(CatalogError):
    """The release has a format that only a newer version of the service can read."""


class StoreError(CatalogError):
    """The store of releases does not reply in time, refuses a call, or holds unreadable data."""


class DamagedError(StoreError):
    """A document or a file of a release is damaged. Reading it again does not help."""


class BusyError(WarehouseError):
    """Another publisher holds the data folder, or another watcher the inbox."""


class LostRaceError(BusyError):
    """Another process changed the store of releases first."""


class ConflictError(WarehouseError):
    """An object has another version than the one to be replaced."""


class InboxError(WarehouseError):
    """The inbox cannot be read or written."""


class FilesHang(WarehouseError):  # noqa: N818 - readers of logs search for this name
    """The call did not return in time, or was skipped because an earlier call has not returned."""


class LookupFailure(WarehouseError):  # noqa: N818 - readers of logs search for this name
    """A look-up failed."""


class LookupBusy(LookupFailure):
    """Too many look-ups are waiting."""


class LookupStuck(LookupFailure):
    """Every thread has a query that did not end after an interrupt."""


class LookupTimeout(LookupFailure):
    """The deadline of the look-up passed."""

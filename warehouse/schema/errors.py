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
    """Base of all errors here. The message is one line for whoever runs the command."""


class DropError(WarehouseError):
    """The given paths are not a readable drop."""


class CatalogError(WarehouseError):
    """A release is unknown, damaged, or cannot be written."""


class NoReleaseError(CatalogError):
    """Nothing has been published yet."""


class NoSuchReleaseError(CatalogError):
    """No release has this id."""


class NeedsNewerError(CatalogError):
    """The release is of a format that only a newer version of the service reads."""


class StoreError(CatalogError):
    """The store of releases does not answer in time, refuses, or holds what nobody can read."""


class DamagedError(StoreError):
    """A document or a file of a release is not what it should be. Reading it again does not help."""


class BusyError(WarehouseError):
    """Another publisher holds the data folder, or another watcher the inbox."""


class LostRaceError(BusyError):
    """Somebody else changed the store of releases first."""


class ConflictError(WarehouseError):
    """An object is another version than the one that was to be replaced."""


class InboxError(WarehouseError):
    """The inbox cannot be read or written."""


class FilesHang(WarehouseError):  # noqa: N818 - the name is what a log's reader looks for
    """The call did not return in time, or was not made because an earlier call has not returned."""


class LookupFailure(WarehouseError):  # noqa: N818 - the name is what a log's reader looks for
    """A look-up failed."""


class LookupBusy(LookupFailure):
    """Too many look-ups are waiting."""


class LookupStuck(LookupFailure):
    """Every thread has a query that does not end, though it was interrupted."""


class LookupTimeout(LookupFailure):
    """The deadline of the look-up passed."""

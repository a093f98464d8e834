"""What can go wrong in the warehouse.

WarehouseError
├── DropError              the paths given are no readable drop
├── CatalogError           a release is unknown, damaged or cannot be written
│   ├── NoReleaseError     nothing was published yet
│   └── NoSuchReleaseError no release has this id
├── BusyError              another publisher holds the data folder, another watcher the inbox
├── FilesHang              the file system does not answer (files/file_access.py)
├── InboxError             the inbox cannot be read or written
└── LookupFailure          a look-up was not answered
    ├── LookupBusy         too many wait already
    ├── LookupStuck        queries before it have not ended, though they were interrupted
    └── LookupTimeout      the deadline passed
"""


class WarehouseError(Exception):
    """The message is one line for the person at the command line."""


class DropError(WarehouseError):
    pass


class CatalogError(WarehouseError):
    pass


class NoReleaseError(CatalogError):
    pass


class NoSuchReleaseError(CatalogError):
    pass


class BusyError(WarehouseError):
    pass


class InboxError(WarehouseError):
    pass


class FilesHang(WarehouseError):  # noqa: N818 - named as what it is to the reader of a log
    """The call did not return in time, or was not made because one before it has not returned."""


class LookupFailure(WarehouseError):  # noqa: N818 - named as what it is to the reader of a log
    pass


class LookupBusy(LookupFailure):
    pass


class LookupStuck(LookupFailure):
    pass


class LookupTimeout(LookupFailure):
    pass

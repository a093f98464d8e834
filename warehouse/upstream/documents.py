"""The contents of the store of releases: the names of its objects, and its documents.

blobs/<digest>              one file of releases, by its SHA-256; never changed
releases/<id>.json          a release: its manifest, and the digest of each of its files; never changed
current.json                the list of releases, the current one, the announced one
instances/<id>.json         the beat of one instance
clock                       written to learn the store's time

A document is two lines of JSON: its content, and the SHA-256 of that line, so that a flipped bit is detected.
"""

import secrets
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from config.decoders import decoder_of
from warehouse.releases.catalog import Manifest
from warehouse.releases.instances import InstanceRecord
from warehouse.releases.pointer import Count, FilePath, Moment, ReleaseId
from warehouse.schema.errors import DamagedError

POINTER = "current.json"
RELEASES = "releases"
BLOBS = "blobs"
BEATS = "instances"
CLOCK = "clock"

T = TypeVar("T")

# A pointer with a higher serial is damaged: a change would raise it beyond 2^53.
LAST_SERIAL = 1 << 53
# Real stores have dozens. Instances fetch every release that the pointer names.
MOST_RELEASES = 1000
# A mirror that has dropped a lineage from its list would follow a pointer of it again.
_MOST_LINEAGES = 100

Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class FileOfRelease(msgspec.Struct, frozen=True):
    """One file of a release; its blob has the name of its digest."""

    digest: Digest
    bytes: Count


class StoredRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A release in the store. Written once, after all of its blobs."""

    format: int  # the `RELEASE_FORMAT` that it needs
    manifest: Manifest
    files: dict[FilePath, FileOfRelease]  # by path in the release's folder; all but the manifest


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """The release that its publisher wants to make current: instances make it ready."""

    release: ReleaseId
    by: str | None
    warm_by: tuple[str, ...] = ()  # ids of the instances that warm their cache with it


class StoredPointer(msgspec.Struct, frozen=True, kw_only=True):
    """Which release is current. Replaced only by compare-and-swap; each change raises the serial.

    So no two versions are equal, and an ETag that is a digest of the content never repeats. A mirror ignores a lower
    serial of the same lineage. A repair starts a new lineage, which mirrors always follow.
    """

    serial: Annotated[int, Meta(ge=0, le=LAST_SERIAL)]
    lineage: Annotated[str, Meta(max_length=32)] = ""  # random
    release: ReleaseId | None  # None until the first one is current
    previous: ReleaseId | None = None  # the release that a rollback returns to
    switched_at: Moment | None = None
    by: str | None = None  # the user who made it current
    # all releases, newest first; any other one in the store is a left-over
    releases: Annotated[tuple[ReleaseId, ...], Meta(max_length=MOST_RELEASES)] = ()
    next: Announcement | None = None
    writer: str = ""  # random; a writer whose reply was lost recognises its own write by it


class Followed(msgspec.Struct, frozen=True):
    """The pointer that a mirror has followed, as saved in its data folder."""

    serial: int = 0
    lineage: str = ""
    left: tuple[str, ...] = ()  # lineages before this one, the last ones
    fetched: tuple[str, ...] = ()  # releases

    def is_after(self, pointer: StoredPointer) -> bool:
        """Returns whether the pointer is older than the one that was followed."""
        return pointer.serial < self.serial if pointer.lineage == self.lineage else pointer.lineage in self.left

    def left_for(self, pointer: StoredPointer) -> tuple[str, ...]:
        """Returns the lineages before the pointer's, once it is followed."""
        return self.left if pointer.lineage == self.lineage else (*self.left, self.lineage)[-_MOST_LINEAGES:]


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one instance, as its mirror writes it. Its age is by the store's clock."""

    instance: InstanceRecord
    serial: Count  # of the pointer that this mirror follows; 0 if another mirror on the folder leads
    ready: tuple[str, ...]  # releases that are complete in its data folder
    warmed: dict[str, tuple[str, ...]] = {}  # warnings of warming, by release; an empty tuple if there were none
    problem: str | None = None
    folder: str = ""  # its data folder
    astray: bool = False  # the pointer is older than the one that it follows


def sealed(content: msgspec.Struct | bytes) -> bytes:
    """Returns a document with this content: a struct, or its JSON."""
    line = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return b'%s\n"%s"\n' % (line, sha256(line).hexdigest().encode())


def unsealed(name: str, data: bytes, of: type[T]) -> T:
    """Returns the content of the document `name`. Raises DamagedError if it is damaged, or is not of type `of`."""
    line, _, seal = data.partition(b"\n")
    if seal.strip() != b'"%s"' % sha256(line).hexdigest().encode():
        raise DamagedError(f"{name} in the store of releases cannot be read: it is damaged")
    try:
        return decoder_of(of).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"{name} in the store of releases cannot be read: {error}") from None


def release_name(release: str) -> str:
    return f"{RELEASES}/{release}.json"


def blob_name(digest: str) -> str:
    return f"{BLOBS}/{digest}"


def beat_name(instance: str) -> str:
    return f"{BEATS}/{instance}.json"


def describe_file(path: Path) -> FileOfRelease:
    """Returns the digest and size of a file. Raises OSError."""
    with path.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    return FileOfRelease(digest, path.stat().st_size)


def holds(path: Path, file: FileOfRelease) -> bool:
    """Returns whether the file at `path` has this size and digest. Raises OSError if it cannot be read."""
    try:
        return path.stat().st_size == file.bytes and describe_file(path) == file
    except FileNotFoundError:
        return False


def with_new_lineage(pointer: StoredPointer) -> StoredPointer:
    """Returns the pointer with a new lineage: instances follow it whatever they have seen."""
    return msgspec.structs.replace(pointer, lineage=secrets.token_hex(8))


def explain_lost_race(pointer: StoredPointer) -> str:
    """Returns who published first, as `pointer` says."""
    if pointer.next is not None:
        return f"another publish started first: {pointer.next.by or 'unknown'} is publishing {pointer.next.release}"
    return f"another publish finished first: {pointer.release} is current now, by {pointer.by or 'unknown'}"

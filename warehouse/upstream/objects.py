"""Objects in a bucket: read, created once, replaced by compare-and-swap, listed, deleted. The only user of obstore.

The service relies on guarantees of S3, Google Cloud Storage and Azure Blob Storage: a PUT is atomic, a read sees it at
once, and a PUT may have a condition (RFC 9110: `If-None-Match: *`, `If-Match`).
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from config.text import first_line, printable
from warehouse.schema.errors import ConflictError, DamagedError, StoreError

T = TypeVar("T")

# Timeouts of a request that reads or writes a document.
_DOCUMENT_SECONDS = 5
_CONNECT_SECONDS = 2
# Longest gap while a file is read; longest time until a sent file is acknowledged.
_STALLED_SECONDS = 10
_SENT_SECONDS = 120
_RETRIES = 1
# Real ones have some KB. Writers to the bucket must not be able to fill the memory of readers.
_LARGEST_DOCUMENT = 16 << 20
_LONGEST_REASON = 300

# The codes of S3 and Google Cloud Storage, and of Azure.
_NO_BUCKET_CODES = ("<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>")
_NO_BUCKET = "there is no such bucket or container: check FORECAST_RELEASES_URL, or create it"

# How each kind of store calls the option `endpoint`.
_ENDPOINTS = {"s3": "endpoint", "gs": "base_url", "az": "endpoint"}


class Version(msgspec.Struct, frozen=True):
    """The version of an object that was read, as its store names it."""

    etag: str | None
    generation: str | None = None


class StoredObject(msgspec.Struct, frozen=True):
    """A small object as it was read."""

    data: bytes
    version: Version


class ListedObject(msgspec.Struct, frozen=True):
    """An object as a listing shows it."""

    name: str
    bytes: int
    modified: datetime  # by the store's clock


class Unchanged(msgspec.Struct, frozen=True):
    """The object still has the version that the caller knows."""


class Objects:
    """The objects below one prefix of a bucket. Calls block, and are thread-safe.

    All methods raise StoreError if the store does not reply in time, refuses, or lacks the bucket.
    """

    def __init__(self, documents: Any, downloads: Any = None, uploads: Any = None) -> None:
        """The arguments are obstore's stores of the same place, with timeouts of their own."""
        import obstore  # an optional extra: imported only if there is a store

        self._obstore = obstore
        self._documents = documents
        self._downloads = downloads or documents
        self._uploads = uploads or documents

    def get(self, name: str, known: Version | None = None) -> StoredObject | Unchanged | None:
        """Returns a small object; None if there is none, Unchanged if it still is the version `known`.

        Raises:
            StoreError: also if it is too large for a document.
        """
        options = {} if known is None or known.etag is None else {"if_none_match": known.etag}
        with _as_store_errors(name):
            try:
                return _interruptible(lambda: self._read(name, options))
            except FileNotFoundError as error:
                if _lacks_bucket(error):
                    raise
                return None
            except self._obstore.exceptions.NotModifiedError:
                return Unchanged()

    def stream(self, name: str) -> Iterator[bytes]:
        """Yields the bytes of an object of any size, in blocks. Raises FileNotFoundError if there is none."""
        with _as_store_errors(name):
            found = _interruptible(lambda: self._obstore.get(self._downloads, name))
            for block in _each(found.stream(min_chunk_size=1 << 20)):
                yield bytes(block)

    def create(self, name: str, content: bytes | Path) -> bool:
        """Creates an object, whole or not at all. Returns False if the name exists; that object is unchanged."""
        with _as_store_errors(name):
            try:
                _interruptible(lambda: self._put(name, content, "create"))
            except self._obstore.exceptions.AlreadyExistsError:
                return False
            return True

    def put(self, name: str, content: bytes | Path) -> None:
        """Creates or replaces an object."""
        with _as_store_errors(name):
            _interruptible(lambda: self._put(name, content, "overwrite"))

    def replace(self, name: str, data: bytes, known: Version | None) -> Version:
        """Replaces the version `known` of an object; with None, creates it. Returns the new version.

        Ctrl-C waits for its end: an interrupted command must not report that nothing changed while this is under way.

        Raises:
            ConflictError: if the object has another version by now, or was created.
        """
        with _as_store_errors(name):
            try:
                return _version(self._put(name, data, "create" if known is None else _condition(known)))
            except (
                self._obstore.exceptions.AlreadyExistsError,
                self._obstore.exceptions.PreconditionError,
            ) as error:
                raise ConflictError(f"another process changed {name}") from error

    def modified(self, name: str) -> datetime | None:
        """Returns when an object was written, by the store's clock; None if there is none."""
        found = self._head(name)
        return found["last_modified"] if found is not None else None

    def version(self, name: str) -> Version | None:
        """Returns the version of an object, whatever its content; None if there is none."""
        found = self._head(name)
        return _version(found) if found is not None else None

    def list(self, folder: str) -> Iterator[ListedObject]:
        """Yields the objects in a folder and below, in no order."""
        with _as_store_errors(f"{folder}/"):
            for page in _each(self._obstore.list(self._documents, folder)):
                for one in page:
                    yield ListedObject(one["path"], one["size"], one["last_modified"])

    def delete(self, name: str) -> None:
        """Deletes an object, if there is one."""
        with _as_store_errors(name), suppress(FileNotFoundError):
            self._obstore.delete(self._documents, name)

    def _head(self, name: str) -> Any:
        with _as_store_errors(name):
            try:
                return _interruptible(lambda: self._obstore.head(self._documents, name))
            except FileNotFoundError:
                return None

    def _read(self, name: str, options: Any) -> StoredObject:
        found = self._obstore.get(self._documents, name, options=options)
        size = found.meta["size"]
        if size > _LARGEST_DOCUMENT:
            raise DamagedError(
                f"the store of releases: {name} has {size:,} bytes; a document has at most {_LARGEST_DOCUMENT:,}"
            )
        return StoredObject(bytes(found.bytes()), _version(found.meta))

    def _put(self, name: str, content: bytes | Path, mode: Any) -> Any:
        store = self._uploads if isinstance(content, Path) else self._documents
        try:
            return self._obstore.put(store, name, content, mode=mode, use_multipart=False)
        except FileNotFoundError:  # an object needs no folder, so the bucket is missing
            raise StoreError(f"the store of releases: {name}: {_NO_BUCKET}") from None


class FolderObjects(Objects):
    """Objects in a folder, for trials and tests: a lock replaces the conditional PUT."""

    def __init__(self, folder: Path) -> None:
        from obstore.store import LocalStore  # an optional extra

        super().__init__(LocalStore(folder, mkdir=True))
        self._lock = folder / ".lock"

    def replace(self, name: str, data: bytes, known: Version | None) -> Version:
        with self._lock.open("w") as lock:
            flock(lock, LOCK_EX)
            if self.version(name) != known:
                raise ConflictError(f"another process changed {name}")
            with _as_store_errors(name):
                return _version(self._put(name, data, "overwrite"))


def open_objects(url: str, options: Mapping[str, str] | None = None) -> Objects:
    """Opens the objects at a URL: s3://, gs:// or az:// with bucket and prefix, or file:// with a folder.

    Credentials are found as the tools of each cloud find them: in its variables, its files, or the machine's role.

    Raises:
        StoreError: if the extra `releases` is missing, or an option is wrong.
    """
    try:
        from obstore.store import from_url
    except ImportError:
        raise StoreError(
            "the extra `releases` is missing: pip install 'population-housing-forecast[releases]'"
        ) from None
    parts = urlsplit(url)
    if parts.scheme == "file":
        return FolderObjects(Path(parts.path))
    given = dict(options or {})
    allow_http = given.pop("allow_http", "false").lower() in ("true", "1", "yes")
    named = {_ENDPOINTS[parts.scheme] if name == "endpoint" else name: value for name, value in given.items()}
    if parts.scheme == "s3":
        named["disable_bulk_delete"] = "true"  # a POST, which needs other rights on some S3 implementations

    def store(**seconds: int) -> Any:
        limits = {name: f"{value}s" for name, value in seconds.items()}
        client: Any = {"allow_http": allow_http, "connect_timeout": f"{_CONNECT_SECONDS}s", **limits}
        retries: Any = {"max_retries": _RETRIES}
        return from_url(url, config=named, client_options=client, retry_config=retries)  # type: ignore[call-overload]

    with _as_store_errors(url):
        return Objects(
            store(timeout=_DOCUMENT_SECONDS),
            store(timeout=3600, read_timeout=_STALLED_SECONDS),
            store(timeout=_SENT_SECONDS),
        )


def _interruptible(call: Callable[[], T]) -> T:
    """Returns the result of a call that may take minutes if the store stalls. On the main thread, Ctrl-C ends the wait.

    Native code does not check for signals, so another thread makes the call. After Ctrl-C, that thread runs on.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result()


def _each(blocking: Any) -> Iterator[Any]:
    """Yields from a blocking iterator; waits for each item as `_interruptible` does."""
    waiting = iter(blocking)
    while (one := _interruptible(lambda: next(waiting, None))) is not None:
        yield one


def _version(meta: Any) -> Version:
    return Version(meta["e_tag"], meta["version"])


def _condition(known: Version) -> dict[str, str]:
    named = {"e_tag": known.etag, "version": known.generation}
    return {name: value for name, value in named.items() if value is not None}


@contextmanager
def _as_store_errors(name: str) -> Iterator[None]:
    """Turns obstore's errors into a StoreError of one line, except those that callers expect."""
    from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError

    try:
        yield
    except (AlreadyExistsError, NotModifiedError, PreconditionError):
        raise
    except FileNotFoundError as error:
        if _lacks_bucket(error):
            raise StoreError(f"the store of releases: {name}: {_NO_BUCKET}") from None
        raise
    except (BaseError, OSError, ValueError, RuntimeError) as error:
        reason = _NO_BUCKET if _lacks_bucket(error) else _reason(error)
        raise StoreError(f"the store of releases: {name}: {reason}") from None


def _lacks_bucket(error: Exception) -> bool:
    """Returns whether a 404 means the bucket. Only the store's own code shows that; HEAD has none."""
    return any(code in str(error) for code in _NO_BUCKET_CODES)


def _reason(error: Exception) -> str:
    """Returns the first line of an error, without the store's XML and queries of URLs, which may carry a signature."""
    code = re.search(r"<Code>([A-Za-z]+)</Code>", str(error))
    line = re.sub(r"\?\S*", "", first_line(error)).partition(": <")[0]
    return printable(line[:_LONGEST_REASON]) + (f" ({code[1]})" if code else "")

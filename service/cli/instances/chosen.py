"""The instances that a command calls: those on the data folder and the key store, or the one at `--url`."""

import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from config.settings import Settings
from config.text import printable
from config.urls import EMBEDDED, is_loopback
from service.base import interruption
from service.cli.instances.client import CallError, OperatorsClient
from service.cli.output import FAILED, fail, print_error, print_warnings
from service.redis.errors import StoreUnavailable
from warehouse.releases.instances import InstanceRecord, live_instances

if TYPE_CHECKING:
    from service.instance.registry import Peer

_MOST_AT_ONCE = 16
_SAY_WHERE = "set FORECAST_ADVERTISE_URL there, run this command there, or use --url"
_STORE_SECONDS = 1.0
NONE_RUNS = "no instance runs on {}"

T = TypeVar("T")
InstanceCall = Callable[[OperatorsClient], T]


def _listener_url(text: str) -> str:
    """The type of `--url`: the URL of an operators' listener."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or "@" in parts.netloc or parts.query or parts.fragment:
        raise click.BadParameter("give the URL of an operators' listener, like http://127.0.0.1:8001")
    return text.rstrip("/")


url_option = click.option(
    "--url",
    type=_listener_url,
    metavar="URL",
    help="Call the operators' listener at URL (default: all on the data folder or the key store).",
)


class InstanceReply(msgspec.Struct, Generic[T], frozen=True):
    """One instance, and its answer or an error."""

    name: str  # for a person: "instance 3f9c20d1 on web-1"
    url: str
    answer: T | None
    error: str | None = None


class InstanceTarget(msgspec.Struct, frozen=True):
    """An instance to call."""

    name: str
    url: str
    instance: str | None = None  # its id; None for the one at --url
    elsewhere: str | None = None  # the other host on whose loopback it listens


def targets(settings: Settings, url: str | None, *, warns: bool = True) -> list[InstanceTarget]:
    """Returns the instance at `url`, or else those on the data folder or the key store; may be empty.

    Without `warns`, an unreachable key store is not reported: a live screen has no room for it.
    """
    if url is not None:
        return [InstanceTarget(url, url)]
    found = {record.instance: _target(record) for record in live_instances(settings.data_path)}
    for peer in _on_key_store(settings, warns=warns):
        found.setdefault(peer.instance, _target(peer))
    return list(found.values())


def targets_or_fail(settings: Settings, url: str | None) -> list[InstanceTarget]:
    """Like `targets`, but fails the command if there are none."""
    found = targets(settings, url)
    if not found:
        where = settings.data_path.absolute()
        fail(f"{NONE_RUNS.format(where)}: start one with `forecast serve`, or use --url")
    return found


def call_all(settings: Settings, found: Sequence[InstanceTarget], call: InstanceCall[T]) -> list[InstanceReply[T]]:
    """Calls all at once, so that several that hang cost no more time than one."""
    with ThreadPoolExecutor(min(len(found), _MOST_AT_ONCE) or 1) as threads:
        return list(threads.map(lambda one: call_one(settings, one, call), found))


def call_one(settings: Settings, target: InstanceTarget, call: InstanceCall[T]) -> InstanceReply[T]:
    if target.elsewhere is not None:
        problem = f"it listens only on {target.url} of {target.elsewhere}: {_SAY_WHERE}"
        return InstanceReply(target.name, target.url, None, printable(problem))
    try:
        return InstanceReply(target.name, target.url, call(OperatorsClient(target.url, settings)))
    except CallError as error:
        return InstanceReply(target.name, target.url, None, str(error))


def print_failed_calls(asked: Iterable[InstanceReply[Any]]) -> int:
    """Prints the error of each instance that gave no answer; returns the exit code."""
    errors = [f"{one.name}: {one.error}" for one in asked if one.error is not None]
    for error in errors:
        print_error(error)
    return FAILED if errors else 0


def _on_key_store(settings: Settings, *, warns: bool) -> "list[Peer]":
    """Returns the instances on the key store; none if the store is unreachable, or embedded.

    All instances on an embedded store share the data folder.
    """
    if settings.keys_url == EMBEDDED:
        return []

    from service.instance.registry import peers_in  # these imports take a tenth of a second
    from service.redis.primary import found_store

    async def ask() -> "list[Peer]":
        async with found_store("key store", settings.keys_url, _STORE_SECONDS) as store:
            return await peers_in(store)

    try:
        return interruption.run(ask())
    except StoreUnavailable as error:
        if warns:
            print_warnings([f"instances on other data folders are unknown: {error}"])
        return []


def _target(one: "InstanceRecord | Peer") -> InstanceTarget:
    is_remote = one.host != socket.gethostname() and is_loopback(urlsplit(one.operator_url).hostname or "")
    return InstanceTarget(one.name, one.operator_url, one.instance, one.host if is_remote else None)

"""Which instances a command asks: those on the data folder and on the key store, or the one that `--url` names."""

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from config.settings import Settings
from config.urls import EMBEDDED
from service.base import interruption
from service.cli.instances.client import AskError, OperatorsClient
from service.cli.output import FAILED, fail, print_error, stderr
from service.redis.errors import StoreUnavailable
from service.reports.text_table import plain
from warehouse.releases.instances import InstanceRecord, live_instances

if TYPE_CHECKING:
    from service.instance.registry import Peer

_MOST_AT_ONCE = 16
_SAY_WHERE = "set FORECAST_ADVERTISE_URL there, run this there, or use --url"
_STORE_SECONDS = 1.0
NONE_RUNS = "no instance runs on {}"

T = TypeVar("T")
Ask = Callable[[OperatorsClient], T]


class InstanceUrl(click.ParamType[str]):
    """The type of `--url`: where an operators' listener is."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parts = urlsplit(str(value))
            good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if not good or "@" in parts.netloc or parts.query or parts.fragment:
            self.fail("give the operators' listener, like http://127.0.0.1:8001", param, ctx)
        return str(value).rstrip("/")


url_option = click.option(
    "--url",
    type=InstanceUrl(),
    help="Ask the operators' listener at URL. Default: all on the data folder or the key store.",
)


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """One instance, and its answer or why there is none."""

    name: str  # for a person: "instance 3f9c20d1 on web-1"
    url: str
    answer: T | None
    error: AskError | None = None

    @property
    def problem(self) -> str | None:
        """The error in words."""
        return None if self.error is None else str(self.error)


class Target(msgspec.Struct, frozen=True):
    """An instance to ask."""

    name: str
    url: str
    instance: str | None = None  # its id; None for that of --url
    elsewhere: str | None = None  # the host on whose loopback it listens, if that is not this one


def targets(settings: Settings, url: str | None) -> list[Target]:
    """The instance at `url`, else those that run on the data folder or share the key store; perhaps none."""
    if url is not None:
        return [Target(url, url)]
    found = {record.instance: _target(record) for record in live_instances(settings.data_path)}
    for peer in _on_key_store(settings):
        found.setdefault(peer.instance, _target(peer))
    return list(found.values())


def targets_or_fail(settings: Settings, url: str | None, *, as_json: bool) -> list[Target]:
    """The same; the command fails if there is none."""
    found = targets(settings, url)
    if not found:
        where = settings.data_path.absolute()
        fail(f"{NONE_RUNS.format(where)}: `forecast serve` starts one, --url names another", as_json=as_json)
    return found


def ask_all(settings: Settings, found: Sequence[Target], ask: Ask[T]) -> list[Asked[T]]:
    """Asks all at once, so that one that hangs delays the others no longer than its own time."""
    with ThreadPoolExecutor(min(len(found), _MOST_AT_ONCE) or 1) as threads:
        return list(threads.map(lambda one: ask_one(settings, one, ask), found))


def ask_one(settings: Settings, target: Target, ask: Ask[T]) -> Asked[T]:
    if target.elsewhere is not None:
        told = f"it listens on {target.url} of {target.elsewhere} alone: {_SAY_WHERE}"
        return Asked(target.name, target.url, None, AskError(told))
    try:
        return Asked(target.name, target.url, ask(OperatorsClient(target.url, settings)))
    except AskError as error:
        return Asked(target.name, target.url, None, error)


def tell_unasked(asked: Iterable[Asked[Any]]) -> None:
    """Names the instances that could not be asked. The command fails if there are any."""
    errors = [f"{one.name}: {one.error}" for one in asked if one.error is not None]
    for error in errors:
        print_error(error)
    if errors:
        sys.exit(FAILED)


def _on_key_store(settings: Settings) -> "list[Peer]":
    """None while the store is away, or embedded: then all instances on it share the data folder."""
    if settings.keys_url == EMBEDDED:
        return []

    from service.instance.registry import peers_in  # these take a tenth of a second
    from service.redis.primary import found, open_store

    async def ask() -> "list[Peer]":
        async with found(settings.keys_url) as primary:
            store = open_store("key store", primary, timeout=_STORE_SECONDS)
            try:
                return await peers_in(store)
            finally:
                await store.stop()

    try:
        return interruption.run(ask())
    except StoreUnavailable as error:
        stderr().print(f"[yellow]warning[/] instances without this data folder are not known: {plain(str(error))}")
        return []


def _target(one: "InstanceRecord | Peer") -> Target:
    away = one.host != socket.gethostname() and _is_loopback(urlsplit(one.operator_url).hostname or "")
    return Target(one.name, one.operator_url, one.instance, one.host if away else None)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

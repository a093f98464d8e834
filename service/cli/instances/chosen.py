"""Which instances a command asks: those that run on the data folder, or the one that `--url` names."""

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from config.settings import Settings
from service.cli.instances.client import AskError, OperatorsClient
from service.cli.output import FAILED, fail, shown
from warehouse.releases.instances import InstanceRecord, live_instances

_MOST_AT_ONCE = 16
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
    "--url", type=InstanceUrl(), help="Ask the operators' listener at URL. Default: all instances on the data folder."
)


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """One instance, and its answer or why there is none."""

    name: str  # for a person: "instance 3f9c20d1 on web-1"
    url: str
    answer: T | None
    error: AskError | None = None


class Target(msgspec.Struct, frozen=True):
    """An instance to ask."""

    name: str
    url: str
    elsewhere: str | None = None  # the host on whose loopback it listens, if that is not this one


def targets(settings: Settings, url: str | None) -> list[Target]:
    """The instance at `url`, else those that run on the data folder; perhaps none."""
    if url is not None:
        return [Target(url, url)]
    return [_target(record) for record in live_instances(settings.data_path)]


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
        told = f"it listens on {target.url} of {target.elsewhere} alone: run this there, or use --url"
        return Asked(target.name, target.url, None, AskError(told))
    try:
        return Asked(target.name, target.url, ask(OperatorsClient(target.url, settings)))
    except AskError as error:
        return Asked(target.name, target.url, None, error)


def tell_unasked(asked: Iterable[Asked[Any]]) -> None:
    """Names the instances that could not be asked. The command fails if there are any."""
    errors = [f"{one.name}: {one.error}" for one in asked if one.error is not None]
    for error in errors:
        click.echo(f"forecast: {shown(error)}", err=True)
    if errors:
        sys.exit(FAILED)


def _target(record: InstanceRecord) -> Target:
    away = record.host != socket.gethostname() and _is_loopback(urlsplit(record.operator_url).hostname or "")
    return Target(record.name, record.operator_url, record.host if away else None)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

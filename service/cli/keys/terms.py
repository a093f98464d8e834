"""The terms of a key as options of commands."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from service.base.terms import PARTNER_USAGE, Quota, Rate, Terms, parse_quota, parse_rate
from service.keys.errors import KeyStoreError

F = TypeVar("F", bound=Callable[..., Any])

_MOST_BURST = 10**9  # requests


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The terms in the options of one command; None for an absent option."""

    areas: tuple[str, ...] | None
    rate: str | None  # as typed: 500/s
    burst: int | None  # requests
    quota: str | None  # as typed: 5000000/month
    warn_at: float | None  # share of the quota, 0 to 1

    def terms(self) -> Terms:
        """Returns the terms of a new key. Raises click.UsageError if an option that another one needs is absent."""
        if self.burst is not None and self.rate is None:
            raise click.UsageError("--burst needs --rate")
        if self.warn_at is not None and self.quota is None:
            raise click.UsageError("--warn-at needs --quota")
        return Terms(self.areas, self.new_rate(), self.new_quota())

    def new_rate(self) -> Rate | None:
        return None if self.rate is None else _parsed("--rate", parse_rate, self.rate, self.burst)

    def new_quota(self) -> Quota | None:
        if self.quota is None:
            return None
        share = () if self.warn_at is None else (self.warn_at,)
        return _parsed("--quota", parse_quota, self.quota, *share)

    def nothing(self) -> bool:
        return all(getattr(self, name) is None for name in self.__struct_fields__)


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that one `keys change` removes."""

    areas: bool
    rate: bool
    quota: bool


def editor(given: Given, dropped: Dropped, *, required: bool = True) -> Callable[[Terms], Terms]:
    """Returns the function that applies the options to the terms of a key. `required`: there must be one.

    The function raises KeyStoreError if the key lacks the rate or quota that an option changes.

    Raises:
        click.UsageError: if the options contradict each other, or change no terms.
    """
    for lifted, flag, options in (
        (dropped.areas, "--all-areas", (given.areas,)),
        (dropped.rate, "--no-rate", (given.rate, given.burst)),
        (dropped.quota, "--no-quota", (given.quota, given.warn_at)),
    ):
        if lifted and any(option is not None for option in options):
            raise click.UsageError(f"{flag} contradicts the other options")
    if required and given.nothing() and not (dropped.areas or dropped.rate or dropped.quota):
        raise click.UsageError(
            "no change requested: give --areas, --rate, --burst, --quota or --warn-at, or --all-areas, --no-rate, "
            "--no-quota, --plan or --no-plan"
        )
    rate, quota = given.new_rate(), given.new_quota()

    def edit(terms: Terms) -> Terms:
        areas = None if dropped.areas else given.areas or terms.areas
        return Terms(
            areas,
            None if dropped.rate else rate or _with_burst(terms.rate, given.burst),
            None if dropped.quota else quota or _with_warning(terms.quota, given.warn_at),
        )

    return edit


def terms_options(command: F) -> F:
    """Adds --areas, --rate, --burst, --quota and --warn-at."""
    areas = click.option("--areas", callback=_areas, help="Data areas that the key opens, separated by commas.")
    return areas(limit_options(command))


def limit_options(command: F) -> F:
    """Adds --rate, --burst, --quota and --warn-at."""
    for option in (
        click.option("--warn-at", callback=_share, help="Share of the quota at which answers begin to warn: 80%."),
        click.option("--quota", help="Most billable answers in a UTC day or month: 100000/day, 5000000/month."),
        click.option(
            "--burst",
            type=click.IntRange(1, _MOST_BURST),
            help="Most requests at once after a pause, with --rate. Default: the requests of one second.",
        ),
        click.option("--rate", help="Most requests on average: 500/s, 30/min, 1000/h."),
    ):
        command = option(command)
    return command


def _areas(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    wanted = {name.strip() for name in value.split(",")}
    areas = _all_areas(wanted)
    return tuple(name for name in areas if name in wanted)


def one_area(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that names one area."""
    if value is not None:
        _all_areas({value})
    return value


def _all_areas(names: set[str]) -> list[str]:
    """Returns the names of all areas. Raises click.BadParameter if one of `names` is not among them."""
    # imported here, because importing the framework takes longer than most commands
    from service.http.areas import AREAS
    from service.http.releases.files import BULK

    areas = [*(area.name for area in AREAS), BULK, PARTNER_USAGE]
    for name in sorted(names):
        if name not in areas:
            raise click.BadParameter(f"area {name!r} does not exist; the areas are {', '.join(areas)}")
    return areas


def _share(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    number, percent, rest = value.partition("%")
    if percent and not rest and number.isascii() and number.isdigit() and 1 <= int(number) <= 100:
        return int(number) / 100
    raise click.BadParameter("write a share as 80%, from 1% to 100%")


T = TypeVar("T")


def _parsed(option: str, parse: Callable[..., T], *values: object) -> T:
    try:
        return parse(*values)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None


def _with_burst(rate: Rate | None, burst: int | None) -> Rate | None:
    if burst is None:
        return rate
    if rate is None:
        raise KeyStoreError("the key has no rate, which --burst needs: give --rate too; the key is unchanged")
    return msgspec.structs.replace(rate, burst=burst)


def _with_warning(quota: Quota | None, warn_at: float | None) -> Quota | None:
    if warn_at is None:
        return quota
    if quota is None:
        raise KeyStoreError("the key has no quota, which --warn-at needs: give --quota too; the key is unchanged")
    return msgspec.structs.replace(quota, warn_at=warn_at)

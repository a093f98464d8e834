"""Typed settings: a TOML file, then ``FORECAST_*`` variables, then what a command was told.

Every setting is a field of `Settings`; its type, bounds and description are all there is to declare.
Unknown names and bad values are a `SettingsError` that names them. Every setting marked secret can be read from a
file through ``<NAME>_FILE``.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Meta

PREFIX = "FORECAST_"
EMBEDDED = "embedded"
# Kubernetes injects these into every pod beside a service named "forecast"; they are never ours.
FOREIGN_PREFIXES = ("FORECAST_PORT", "FORECAST_SERVICE_")

_SECRET = {"secret": True}
_URL = {"secret": True, "url": True}

DEFAULT_ATTRIBUTION = (
    "Population and housing: U.S. Census Bureau",
    "Locations: U.S. Census Bureau Gazetteer; GeoNames (https://www.geonames.org/), CC BY 4.0",
)


class SettingsError(Exception):
    """A setting is unknown, malformed or unreadable. The message names it and says what to do."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force for one command. Durations are seconds, sizes are bytes."""

    data_dir: Annotated[str, Meta(description="Folder of releases, key store and instance records.")]
    keys_url: Annotated[
        str, Meta(description="Redis of the API keys: redis://, rediss:// or unix://, or `embedded`.", extra=_URL)
    ] = EMBEDDED
    cache_url: Annotated[
        str, Meta(description="Redis of the shared cache: redis://, rediss:// or unix://, or `embedded`.", extra=_URL)
    ] = EMBEDDED
    keys_pepper: Annotated[
        str | None,
        Meta(description="Secret that key digests are made with; created in the data folder if unset.", extra=_SECRET),
    ] = None
    embedded_allowed: Annotated[
        bool, Meta(description="Whether `embedded` is accepted; the container image says false.")
    ] = True

    listen_host: Annotated[str, Meta(description="Address of the partners' listener.")] = "127.0.0.1"
    listen_port: Annotated[int, Meta(ge=0, le=65535, description="Port of the partners' listener.")] = 8000
    operator_host: Annotated[str, Meta(description="Address of the operators' listener.")] = "127.0.0.1"
    operator_port: Annotated[int, Meta(ge=0, le=65535, description="Port of the operators' listener.")] = 8001
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=256)] | None,
        Meta(description="Serving processes; unset: the processors this machine may use."),
    ] = None

    cache_ttl: Annotated[
        int, Meta(ge=1, le=31_536_000, description="Time to live of an entry in the shared cache.")
    ] = 86_400
    cache_timeout: Annotated[
        float, Meta(gt=0, le=5, description="Longest wait for the shared cache before the warehouse answers.")
    ] = 0.05
    keys_timeout: Annotated[
        float, Meta(gt=0, le=5, description="Longest wait for one try at the key store (there are two).")
    ] = 0.1
    lookup_timeout: Annotated[
        float, Meta(gt=0, le=4, description="Deadline of one look-up in the warehouse, waiting included.")
    ] = 2.0
    lookup_queue: Annotated[
        int, Meta(ge=1, le=100_000, description="Look-ups that may wait for the warehouse in one worker; more are 503.")
    ] = 256
    lookup_memory: Annotated[
        Annotated[int, Meta(ge=33_554_432)] | None,
        Meta(description="Memory of DuckDB in one worker; unset: an eighth of what is available."),
    ] = None

    max_age: Annotated[
        int, Meta(ge=0, le=86_400, description="`max-age` of Cache-Control on answers that may be kept.")
    ] = 60
    keep_alive: Annotated[
        int, Meta(ge=1, le=3600, description="How long an idle connection stays open; more than the balancer's.")
    ] = 75
    drain: Annotated[
        float, Meta(ge=0, le=300, description="Longest time that a worker told to stop finishes requests.")
    ] = 10.0
    docs: Annotated[bool, Meta(description="Whether /docs/ on the partners' listener shows the documentation.")] = False

    log_format: Annotated[
        Literal["auto", "json", "text"], Meta(description="`auto` is text in a terminal and JSON elsewhere.")
    ] = "auto"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="Least severity logged.")] = (
        "info"
    )
    access_log: Annotated[
        Literal["off", "errors", "all"], Meta(description="Requests logged: none, those answered 5xx, or all.")
    ] = "errors"

    attribution: Annotated[
        tuple[str, ...],
        Meta(description="Sources named by a release whose extracts name none; `|` between them."),
    ] = DEFAULT_ATTRIBUTION

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)


class Loaded(msgspec.Struct, frozen=True):
    """Settings with the place each value came from, by name."""

    settings: Settings
    sources: dict[str, str]


def load(
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    checkout: Path | None = None,
) -> Loaded:
    """Settings in force: defaults, then the TOML file of ``FORECAST_CONFIG``, then variables, then `overrides`.

    `overrides` are a command's own options by setting name; None means not given. `checkout` is where the default
    data folder lies if the program runs from a checkout.

    Raises:
        SettingsError: naming every unknown name, or the first bad value.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {"data_dir": str(default_data_dir(environ, checkout or _checkout()))}
    sources = dict.fromkeys(names(), "default")
    for layer in (_from_toml(environ), _from_environment(environ), _from_options(overrides or {})):
        for name, value, source in layer:
            values[name] = _convert(name, value, source)
            sources[name] = source
    return Loaded(Settings(**values), sources)  # type: ignore[arg-type]


def names() -> tuple[str, ...]:
    return Settings.__struct_fields__


def describe(name: str) -> str:
    return _meta(name).description or ""


def is_secret(name: str) -> bool:
    return bool((_meta(name).extra or {}).get("secret"))


def masked(name: str, value: object) -> object:
    """`value` as it may be shown: a secret never is, of a URL only its password is hidden."""
    if value is None or not is_secret(name):
        return value
    if (_meta(name).extra or {}).get("url"):
        return mask_url(str(value))
    return "********"


def mask_url(url: str) -> str:
    """`url` without its password and without its query, which can carry one too."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "********"
    if not parts.scheme:
        return url if url == EMBEDDED else "********"
    user, at, host = parts.netloc.rpartition("@")
    user = f"{user.partition(':')[0]}:********" if ":" in user else user
    return urlunsplit((parts.scheme, f"{user}{at}{host}", parts.path, "********" if parts.query else "", ""))


def default_data_dir(environ: Mapping[str, str], checkout: Path | None) -> Path:
    """``.forecast`` of the checkout that the program runs from, else the user's data folder (XDG)."""
    if checkout is not None:
        return checkout / ".forecast"
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "share")
    return Path(base) / "forecast"


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "service").is_dir() else None


def _meta(name: str) -> Meta:
    annotation = Settings.__annotations__[name]
    meta: Meta = annotation.__metadata__[0]
    return meta


type_of: Callable[[str], Any] = Settings.__annotations__.__getitem__


def _convert(name: str, value: object, source: str) -> object:
    if name == "attribution" and isinstance(value, str):
        value = [part.strip() for part in value.split("|") if part.strip()]
    if isinstance(value, str) and not value.strip():
        raise SettingsError(f"{source}: is empty; remove it to use the default of {name}")
    try:
        # lax only for text: a variable has no types, a TOML file has
        converted: object = msgspec.convert(value, type_of(name), strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        shown = "" if is_secret(name) else f", got {value!r}"
        raise SettingsError(f"{source}: {error}{shown} ({describe(name)})") from None
    if name == "data_dir":
        converted = str(Path(str(converted)).expanduser().absolute())
    return converted


def _from_toml(environ: Mapping[str, str]) -> Iterator[tuple[str, object, str]]:
    location = environ.get(f"{PREFIX}CONFIG")
    if not location:
        return
    try:
        content = tomllib.loads(Path(location).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{PREFIX}CONFIG: cannot read {location}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{location}: not TOML: {error}") from None
    unknown = [key for key in content if _owner(key) is None]
    if unknown:
        raise SettingsError(_unknown(unknown, location))
    for key, value in content.items():
        name = _owner(key) or key
        source = f"{location}: {key}"
        yield (name, value, source) if key == name else (name, _read_secret(str(value), source), source)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, object, str]]:
    ours = {
        key: key.removeprefix(PREFIX).lower()
        for key in sorted(environ)
        if key.startswith(PREFIX) and not key.startswith(FOREIGN_PREFIXES) and key != f"{PREFIX}CONFIG"
    }
    unknown = [key for key, short in ours.items() if _owner(short) is None]
    if unknown:
        raise SettingsError(_unknown(unknown, "the environment"))
    for key, short in ours.items():
        name = _owner(short) or short
        if short == name:
            yield name, environ[key], key
        elif f"{PREFIX}{name.upper()}" in environ:
            raise SettingsError(f"{key} and {PREFIX}{name.upper()} are both set; keep one")
        else:
            yield name, _read_secret(environ[key], key), key


def _from_options(overrides: Mapping[str, object]) -> Iterator[tuple[str, object, str]]:
    for name, value in overrides.items():
        if value is not None:
            yield name, value, "the command line"


def _owner(key: str) -> str | None:
    """The setting that `key` sets: itself, or a secret's name behind ``_file``."""
    if key in names():
        return key
    name = key.removesuffix("_file")
    return name if name in names() and is_secret(name) else None


def _read_secret(location: str, source: str) -> str:
    try:
        value = Path(location).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source}: cannot read {location}: {error}") from None
    if not value:
        raise SettingsError(f"{source}: {location} is empty")
    return value


def _unknown(keys: list[str], place: str) -> str:
    from difflib import get_close_matches

    hints = []
    for key in keys:
        close = get_close_matches(key.removeprefix(PREFIX).lower(), names(), n=1)
        hint = f" (did you mean {PREFIX}{close[0].upper()}?)" if close else ""
        hints.append(f"{key}{hint}")
    return f"unknown setting in {place}: {', '.join(hints)}; `forecast config` lists those there are"

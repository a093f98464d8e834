"""The settings in force: defaults, then a TOML file, then ``FORECAST_*`` variables, then a command's options.

Unknown names and bad values are a `SettingsError` that names them. Every secret can be read from a file through
``<NAME>_FILE`` (Decision 13).
"""

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from config.metadata import describe_setting, is_secret, is_url, names, type_of
from config.refusals import reword
from config.settings import ENVIRONMENT_PREFIX, Settings, SettingsError
from config.text import parse_duration
from config.urls import EMBEDDED, keys_problem, option_problem, releases_url_problem, url_problem

# Kubernetes sets these in pods if a service is named "forecast"; they are never settings.
FOREIGN_PREFIXES = ("FORECAST_PORT", "FORECAST_SERVICE_")

_CONFIG = f"{ENVIRONMENT_PREFIX}CONFIG"
_FILE = "_file"
_FOLDERS = ("data_dir", "inbox")
_SEPARATORS = {"attribution": "|", "operator_allowed_hosts": ",", "inbox_tables": ",", "inbox_hold": ","}
_PAIRS = ("limits", "severities", "releases_options")
_SHARES = ("access_log", "traces")
DURATIONS = (
    "cache_ttl",
    "cache_timeout",
    "near_cache_ttl",
    "keys_timeout",
    "lookup_timeout",
    "max_age",
    "keep_alive",
    "connection_age",
    "drain",
    "slow_request",
    "inbox_settle",
    "inbox_quiet",
    "drop_every",
)

_BOUND = re.compile(r"` [<>]=? [0-9]")  # in a message on a number that is too small or too large

# For each setting in one source: its name, its value as written, and its source.
SourcedSettings = Iterator[tuple[str, object, str]]


class Loaded(msgspec.Struct, frozen=True):
    """The settings of one command, and the source of each value."""

    settings: Settings
    sources: dict[str, str]  # by the setting's name: `default`, a variable, a file and key, or the command line


def load(
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    checkout: Path | None = None,
) -> Loaded:
    """Returns the settings in force, with secrets read from their files.

    `overrides` are a command's own options by setting name; None means absent. `checkout` is the folder of the checkout
    that the program runs from, which has the default data folder.

    Raises:
        SettingsError: on unknown names, which it lists, or on the first bad value.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {"data_dir": str(default_data_dir(environ, checkout or _checkout()))}
    sources = dict.fromkeys(names(), "default")
    for layer in (_from_toml(environ), _from_environment(environ), _from_options(overrides or {})):
        for name, value, source in layer:
            values[name] = _convert(name, value, source)
            sources[name] = source
    settings = Settings(**values)  # type: ignore[arg-type]  # each converted to its field's type above
    _check_tokens(settings, sources)
    return Loaded(settings, sources)


def default_data_dir(environ: Mapping[str, str], checkout: Path | None) -> Path:
    """Returns ``.forecast`` of the checkout that the program runs from, else the user's data folder (XDG)."""
    if checkout is not None:
        return checkout / ".forecast"
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "share")
    return Path(base) / "forecast"


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "service").is_dir() else None


def _from_toml(environ: Mapping[str, str]) -> SourcedSettings:
    location = environ.get(_CONFIG)
    if location is None:
        return
    if not location.strip():
        raise SettingsError(f"{_CONFIG}: is empty; remove it, or name a TOML file")
    try:
        content = tomllib.loads(Path(location).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{_CONFIG}: cannot read {location}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{location}: not TOML: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{location}: not TOML: {error}") from None
    yield from _named(content, f"{location}: ", "")


def _from_environment(environ: Mapping[str, str]) -> SourcedSettings:
    ours = {
        key.removeprefix(ENVIRONMENT_PREFIX).lower(): environ[key]
        for key in sorted(environ)
        if key.startswith(ENVIRONMENT_PREFIX) and not key.startswith(FOREIGN_PREFIXES) and key != _CONFIG
    }
    yield from _named(ours, "", ENVIRONMENT_PREFIX)


def _from_options(overrides: Mapping[str, object]) -> SourcedSettings:
    for name, value in overrides.items():
        if value is not None:
            yield name, value, "the command line"


def _named(found: Mapping[str, object], place: str, prefix: str) -> SourcedSettings:
    """Yields the settings of one source. `place` precedes a key in messages; `prefix` is part of its keys."""

    def written(key: str) -> str:
        return f"{prefix}{key.upper()}" if prefix else key

    unknown = [key for key in found if _owner(key) is None]
    if unknown:
        hints = ", ".join(f"{written(key)}{_hint(key, written)}" for key in unknown)
        raise SettingsError(
            f"{place}unknown setting{'s' if len(unknown) > 1 else ''} {hints}; "
            "`forecast config --defaults` lists all settings"
        )
    for key, value in found.items():
        name = _owner(key) or key
        source = f"{place}{written(key)}"
        if key == name:
            yield name, value, source
        elif name in found:
            raise SettingsError(f"{source} and {written(name)} are both set; keep one")
        else:
            yield name, _read_secret(value, source), source


def _owner(key: str) -> str | None:
    """Returns the setting that `key` sets: `key` itself, or without ``_file`` the name of a secret."""
    if key in names():
        return key
    name = key.removesuffix(_FILE)
    return name if name in names() and is_secret(name) else None


def _hint(key: str, written: Callable[[str], str]) -> str:
    keys = [*names(), *(f"{name}{_FILE}" for name in names() if is_secret(name))]
    close = get_close_matches(key.lower(), keys, n=1)
    return f" (did you mean {written(close[0])}?)" if close else ""


def _read_secret(location: object, source: str) -> str:
    if not isinstance(location, str) or not location.strip():
        raise SettingsError(f"{source}: must be the path of a file")
    try:
        value = Path(location).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{source}: cannot read {location}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{source}: {location} is not UTF-8 text") from None
    if not value:
        raise SettingsError(f"{source}: {location} is empty")
    return value


def _convert(name: str, value: object, source: str) -> object:
    # lax only for text: variables have no types, but TOML has
    text = isinstance(value, str)
    if isinstance(value, str):
        value = value.strip()  # editors and shells leave white space behind
        if not value:
            raise SettingsError(f"{source}: is empty; remove it to use the default of {name}")
        if value.encode(errors="replace").decode() != value:
            raise SettingsError(f"{source}: is not UTF-8")
        if name in _SEPARATORS:
            value = [part.strip() for part in value.split(_SEPARATORS[name]) if part.strip()]
        elif name in _PAIRS:
            value = _pairs(value, source)
        else:
            value = _number(name, value, source)
    try:
        converted: object = msgspec.convert(value, type_of(name), strict=not text)
    except msgspec.ValidationError as error:
        problem = str(error)
        written = str(value).lower() if isinstance(value, bool) else repr(value)  # as in TOML
        shown = "" if is_secret(name) else f", got {written}"
        raise SettingsError(f"{source}: {_problem_in_words(name, problem)}{shown} ({describe_setting(name)})") from None
    if is_url(name) and converted != EMBEDDED:
        url = str(converted)
        problem_of_url = url_problem(url) or (keys_problem(url) if name == "keys_url" else None)
        if problem_of_url is not None:
            raise SettingsError(f"{source}: {problem_of_url}")
    problem_of_value = _problem_of(name, converted)
    if problem_of_value is not None:
        raise SettingsError(f"{source}: {problem_of_value}")
    return _absolute(str(converted), source) if name in _FOLDERS else converted


def _number(name: str, text: str, source: str) -> str:
    """Returns a share or a duration as a plain number; any other text unchanged."""
    if name in _SHARES and text.endswith("%"):
        return _share(text, source)
    duration = parse_duration(text) if name in DURATIONS else None
    return text if duration is None else str(int(duration.total_seconds()))


def _problem_in_words(name: str, problem: str) -> str:
    """Explains why a value is refused; for a duration that is not out of bounds, shows valid ones."""
    if name not in DURATIONS or _BOUND.search(problem):
        return reword(problem, type_of(name))
    return f"Expected {'whole ' if '`int' in problem else ''}seconds (90) or a duration (30m, 12h, 31d)"


def _check_tokens(settings: Settings, sources: Mapping[str, str]) -> None:
    """Refuses one token for two rights: a reader must not be able to write."""
    for one, other in combinations(("operator_read_token", "operator_write_token", "operator_keys_token"), 2):
        if getattr(settings, one) is not None and getattr(settings, one) == getattr(settings, other):
            names = f"{sources[one]} and {sources[other]}"
            raise SettingsError(f"{names} are the same token; use two different ones")


def _problem_of(name: str, value: Any) -> str | None:
    """Returns why a value of the right type is refused, for settings with rules beyond their type."""
    if name == "releases_url" and value is not None:
        return releases_url_problem(value)
    if name == "releases_options":
        return option_problem(value)
    return _command_problem(value) if name == "inbox_on_refusal" else None


def _command_problem(command: str) -> str | None:
    try:
        shlex.split(command)
    except ValueError as error:
        return f"is not a command: {error}"
    return None


def _pairs(text: str, source: str) -> dict[str, str]:
    """Parses ``name=value`` pairs, separated by commas; a value may be a percentage."""
    pairs = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise SettingsError(f"{source}: {part.strip()!r} is not name=value")
        pairs[name] = _share(value, source) if value.endswith("%") else value
    return pairs


def _share(percentage: str, source: str) -> str:
    try:
        return repr(float(percentage[:-1]) / 100)
    except ValueError:
        raise SettingsError(f"{source}: {percentage!r} is not a percentage") from None


def _absolute(path: str, source: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:
        raise SettingsError(f"{source}: {path} names a user that does not exist") from None

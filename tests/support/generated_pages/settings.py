"""The tables of settings. The rest of their page is written by hand."""

import re

from msgspec import inspect

from config.loading import DURATIONS, load
from config.metadata import describe_setting, is_secret, is_url, names
from config.settings import Settings
from tests.support.markdown import ROOT, generated_from, written_table

SETTINGS_PAGE = ROOT / "docs/reference/settings.md"
_BEGINNING = generated_from("config/settings.py")
_TABLES = re.compile(rf"(?<={re.escape(_BEGINNING)}\n).*(?=<!-- end -->)", re.DOTALL)
# Each by its first setting.
_GROUPS = {
    "data_dir": "Stores",
    "listen_host": "Listeners and processes",
    "cache_ttl": "Caches and look-ups",
    "max_age": "Answers and connections",
    "log_format": "Logs and traces",
    "limits": "Publishing",
    "inbox": "The inbox",
}
_BYTES = ("near_cache_bytes", "lookup_memory")


def render_settings() -> str:
    """Returns the page as it is, with new tables."""
    kinds = {field.name: field.type for field in inspect.type_info(Settings).fields}  # type: ignore[attr-defined]
    groups: list[tuple[str, list[tuple[str, ...]]]] = []
    for name in names():
        if name in _GROUPS:
            groups.append((_GROUPS[name], []))
        row = (f"`FORECAST_{name.upper()}`", _default(name), _values(name, kinds[name]), describe_setting(name))
        groups[-1][1].append(row)
    head = ("variable", "default", "values", "meaning")
    parts = [f"### {title}\n\n{written_table(head, rows)}\n" for title, rows in groups]
    return _TABLES.sub(lambda _: "\n" + "\n".join(parts) + "\n", SETTINGS_PAGE.read_text())


def _default(name: str) -> str:
    """Returns the default as a variable would have it."""
    value = getattr(load({"HOME": "/nowhere"}).settings, name)
    if (not value and not isinstance(value, bool | int | float)) or name == "data_dir":
        return "unset"
    if isinstance(value, tuple):
        return "`" + "|".join(value) + "`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(name: str, kind: inspect.Type) -> str:
    if is_secret(name):
        return "URL" if is_url(name) else "secret"
    unit = "seconds" if name in DURATIONS else "bytes" if name in _BYTES else "number"
    return _kinds(kind, unit)


def _kinds(kind: inspect.Type, unit: str) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _kinds(inner, unit)
        case inspect.UnionType(types=types):
            return " or ".join(_kinds(one, unit) for one in types if not isinstance(one, inspect.NoneType))
        case inspect.BoolType():
            return "`true` or `false`"
        case inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case inspect.IntType() | inspect.FloatType():
            return f"{unit}, {_bounds(kind)}"
        case inspect.VarTupleType(item_type=inspect.LiteralType() as item):
            return f"list of {_kinds(item, unit)}"
        case inspect.VarTupleType():
            return "list"
        case inspect.DictType():
            return "list of `name=value`"
        case _:
            return "text"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    least = f"above {kind.gt:,}" if kind.gt is not None else f"{kind.ge:,}"
    if kind.le is None:
        return f"{least} or more"
    return f"{least} to {kind.le:,.10g}"

"""The filters of development projects: which of a place are wanted, by status, type and dates."""

from collections.abc import Mapping, Sequence
from typing import get_args

from rapidfuzz import process
from rapidfuzz.distance import OSA

from service.http import corrections
from service.http.area import Parameter
from service.http.errors import ApiError
from service.http.query import read_day
from warehouse.areas.projects import ProjectFilters
from warehouse.schema.vocabulary import ProjectStatus

_DATES = ("status_date", "start_date", "completion_date")
_STATUSES = sorted(get_args(ProjectStatus))
_MOST_TYPOS = 3
_SHORTEST_PART = 3  # characters that one word has of another, or it is chance
_MOST_SHOWN = 20
_SEPARATORS = str.maketrans(" -", "__")


def read_filters(values: Mapping[str, str], types: Sequence[str]) -> ProjectFilters:
    """The filters among a query's values by name. `types` are those of the release. Raises ApiError (400)."""
    status, kind = values.get("status"), values.get("project_type")
    days: dict[str, str] = {}
    for date in _DATES:
        first, last = f"{date}_from", f"{date}_to"
        days |= {name: read_day(name, values[name]).isoformat() for name in (first, last) if name in values}
        if first in days and last in days and days[first] > days[last]:
            raise ApiError("invalid_parameter", f"{first} is after {last}. Exchange them.", first)
    return ProjectFilters(
        status=None if status is None else _read_status(status),
        project_type=None if kind is None else _read_type(kind, types),
        **days,
    )


def _read_status(text: str) -> str:
    word = text.lower().translate(_SEPARATORS)
    if word in _STATUSES:
        return word
    raise ApiError(
        "invalid_parameter", f"{corrections.shown(text)} is no status. {_nearest(word, _STATUSES)}", "status"
    )


def _read_type(text: str, types: Sequence[str]) -> str:
    word = text.lower()
    known = [name.lower() for name in types]
    if not known or word in known:
        return word
    detail = f"No project has the type {corrections.shown(text)}. {_nearest(word, known)}"
    raise ApiError("invalid_parameter", detail, "project_type")


def _nearest(word: str, known: Sequence[str]) -> str:
    """The one of the `known` words that was probably meant; some of them, if none is near."""
    most = min(_MOST_TYPOS, len(word) // 2)
    near = process.extractOne(word, known, scorer=OSA.distance, score_cutoff=most)
    if near is not None:
        return f"Did you mean {near[0]}?"
    within = next((one for one in known if len(word) >= _SHORTEST_PART and (word in one or one in word)), None)
    if within is not None:
        return f"Did you mean {within}?"
    return f"Give one of {', '.join(known[:_MOST_SHOWN])}{', ...' if len(known) > _MOST_SHOWN else '.'}"


def filter_parameters() -> tuple[Parameter, ...]:
    days = [
        Parameter(f"{date}_{end}", f"The {which} {date}, included; those without one are left out.", _DAY, None)
        for date in _DATES
        for end, which in (("from", "first"), ("to", "last"))
    ]
    return (
        Parameter(
            "status",
            "Projects with this status alone.",
            {"type": "string", "enum": _STATUSES},
            None,
        ),
        Parameter(
            "project_type",
            "Projects of this type alone, in any case. A type that no project of the release has is an error.",
            {"type": "string", "maxLength": 100},
            None,
        ),
        *days,
    )


_DAY = {"type": "string", "format": "date"}
FILTERS = tuple(parameter.name for parameter in filter_parameters())

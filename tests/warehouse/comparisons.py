"""Comparisons as tests of drift and of what is shown make them up: nothing changed, but for what is given."""

from typing import Any

import msgspec

from warehouse.schema.comparison import Comparison, FigureChange, PlaceChanges

UNCHANGED = Comparison(
    rows={"aliases": (100, 100), "housing": (50, 50), "locations": (100, 100), "population": (100, 100)},
    places=PlaceChanges(
        old_count=100, new_count=100, gained={}, lost={}, gained_samples=(), lost_samples=(), changed=0
    ),
    figures=(),
    movers=(),
    changed_zip_codes=0,
)


def compared(**over: Any) -> Comparison:
    return msgspec.structs.replace(UNCHANGED, **over)


def places(**over: Any) -> Comparison:
    return compared(places=msgspec.structs.replace(UNCHANGED.places, **over))


def figure(name: str = "population 2023", **over: Any) -> FigureChange:
    """A figure of a hundred ZIP codes that add up to a thousand, the same in both."""
    same: dict[str, Any] = {
        "old_total": 1000,
        "new_total": 1000,
        "old_count": 100,
        "new_count": 100,
        "changed": 0,
        "gained": 0,
        "lost": 0,
    }
    return FigureChange(figure=name, **{**same, **over})

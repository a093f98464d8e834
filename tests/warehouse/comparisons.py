"""Comparisons as tests of drift and of what is shown make them up: nothing changed, but for what is given."""

from typing import Any

import msgspec

from warehouse.schema.comparison import (
    AnswerChanges,
    AnswerExample,
    Comparison,
    FieldChange,
    FigureChange,
    PlaceChanges,
    StateChange,
)

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


ANSWERS = AnswerChanges(
    gained=2,
    lost=1,
    changed=7,
    without=3,
    cities_gained=1,
    cities_lost=0,
    cities_changed=5,
    old_figures=1000,
    new_figures=1200,
    examples=(
        AnswerExample(
            zip_code="36436",
            why="the largest change",
            fields=(
                FieldChange("population 2023", 783, 1800),
                FieldChange("city_name", "Dickinson", "Dickinson Mills"),
            ),
            more=4,
        ),
    ),
)


def state(code: str, *, moved: int = 0, lost: int = 0, **over: Any) -> StateChange:
    """A state of a hundred ZIP codes and a thousand people, of whom `moved` moved."""
    same: dict[str, Any] = {
        "rows": {"locations": (100, 100 - lost), "population": (100, 100 - lost)},
        "gained": 0,
        "lost": lost,
        "changed": 0,
        "without": 0,
        "figures": (figure(moved=moved),),
    }
    return StateChange(state=code, **{**same, **over})

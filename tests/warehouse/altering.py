"""Ways to change the made-up country: verbs that are put together into wrong drops, and into real changes."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.country import DEMAND, HOMES, PEOPLE, Country, revise

Alter = Callable[[Country], object]
Names = str | Sequence[str]

FIGURES = (*PEOPLE, *HOMES, DEMAND)
POINT = ("latitude", "longitude")
COUNTY = ("county_name", "county_fips_code")


def each(*alters: Alter) -> Alter:
    def alter(country: Country) -> None:
        for one in alters:
            one(country)

    return alter


def chosen(country: Country, states: Sequence[str], share: float, names: Sequence[str]) -> list[int]:
    """A `share` of the rows of the states that have a value of all `names`; each time the same ones."""
    columns = [country.column(name) for name in names]
    rows = [row for row in country.rows_in(*states) if all(column[row] is not None for column in columns)]
    return rows if share == 1 else random.Random(4).sample(rows, round(share * len(rows)))


def edit(names: Names, change: Callable[[Any], Any], *states: str, share: float = 1) -> Alter:
    """Each value becomes `change` of it; those that are None stay so."""
    listed = _listed(names)

    def alter(country: Country) -> None:
        for row in chosen(country, states, share, listed):
            for name in listed:
                country.column(name)[row] = change(country.column(name)[row])

    return alter


def scale(names: Names, factor: float, *states: str, share: float = 1) -> Alter:
    return edit(names, lambda figure: round(figure * factor), *states, share=share)


def fill(names: Names, value: Any, *states: str, share: float = 1) -> Alter:
    return edit(names, lambda _: value, *states, share=share)


def lose(names: Names, *states: str, share: float = 1) -> Alter:
    return fill(names, None, *states, share=share)


def noise(names: Names, spread: float, *states: str, share: float = 1, mean: float = 1.0, seed: int = 5) -> Alter:
    """A revision: each figure moves by itself, and all of them by `mean`."""

    def alter(country: Country) -> None:
        rng = random.Random(seed)
        rows = chosen(country, states, share, ())
        for name in _listed(names):
            column = country.column(name)
            for row, figure in zip(rows, revise([column[row] for row in rows], spread, rng), strict=True):
                column[row] = None if figure is None else round(figure * mean)

    return alter


def shuffle(names: Names, *states: str, share: float = 1) -> Alter:
    """Whole rows go to other ZIP codes: what is in `names` stays together."""
    return _move(names, states, share, lambda rows: random.Random(6).sample(rows, len(rows)))


def shift(names: Names, *states: str) -> Alter:
    """Each ZIP code has what the next one had."""
    return _move(names, states, 1, lambda rows: [*rows[1:], rows[0]])


def exchange(one: str, other: str, *states: str) -> Alter:
    def alter(country: Country) -> None:
        first, second = country.column(one), country.column(other)
        for row in chosen(country, states, 1, (one, other)):
            first[row], second[row] = second[row], first[row]

    return alter


def copy(source: str, target: str, *states: str) -> Alter:
    def alter(country: Country) -> None:
        for row in country.rows_in(*states):
            country.column(target)[row] = country.column(source)[row]

    return alter


def columns_late(names: Sequence[str]) -> Alter:
    """Each column has what the next one had; the last one stays."""
    return each(*(copy(source, target) for target, source in itertools.pairwise(names)))


def backwards(names: Sequence[str]) -> Alter:
    pairs = zip(names[: len(names) // 2], reversed(names), strict=False)
    return each(*(exchange(one, other) for one, other in pairs))


def without(*states: str, share: float = 1) -> Alter:
    """A `share` of the ZIP codes is in no table any more."""

    def alter(country: Country) -> None:
        gone = set(chosen(country, states, share, ()))
        country.keep([row for row in range(len(country)) if row not in gone])

    return alter


def without_column(*names: str) -> Alter:
    def alter(country: Country) -> None:
        for name in names:
            del country.figures[name]

    return alter


def added(number: int, state: str, **place: Any) -> Alter:
    """New ZIP codes of a state without figures: places like that of its first one, except for `place`."""

    def alter(country: Country) -> None:
        (like, *_) = country.rows_in(state)
        taken = set(country.places["zip_code"])
        first = int(country.places["zip_code"][like])
        free = [code for at in range(first, 100_000) if (code := f"{at:05}") not in taken][:number]
        for zip_code in free:
            row = {name: values[like] for name, values in country.places.items()} | {"zip_code": zip_code, **place}
            for name, values in country.places.items():
                values.append(row[name])
            for values in country.figures.values():
                values.append(None)

    return alter


def edit_aliases(name: str, change: Callable[[Any], Any], *, share: float = 1) -> Alter:
    """Changes acceptable and unacceptable names alike; primary ones stay."""

    def alter(country: Country) -> None:
        status, values = country.aliases["usps_status"], country.aliases[name]
        rows = [row for row, one in enumerate(status) if one != "primary"]
        for row in random.Random(7).sample(rows, round(share * len(rows))):
            values[row] = change(values[row])

    return alter


def _move(names: Names, states: Sequence[str], share: float, order: Callable[[list[int]], list[int]]) -> Alter:
    listed = _listed(names)

    def alter(country: Country) -> None:
        rows = chosen(country, states, share, listed)
        sources = order(rows)
        for name in listed:
            column = country.column(name)
            values = [column[row] for row in sources]
            for row, value in zip(rows, values, strict=True):
                column[row] = value

    return alter


def _listed(names: Names) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names

"""Aliases that answer without figures although the town that they are in has some."""

from collections.abc import Iterable, Iterator

from warehouse.places.city_names import strip_state
from warehouse.places.keyset import KeySet, Match
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding
from warehouse.schema.tables import ALIASES

_MOST_NAMED = 100  # nothing else lists them: they are of the release, and in no file of --failures
_MOST_KEYS = 5


def barren_aliases(keys: KeySet, aliases: Iterable[tuple[str, str, str]]) -> list[Finding]:
    """The finding on such aliases, as `keys` resolves them; none if there are none.

    `aliases` are ZIP code, name and state of the accepted ones.
    """
    found: dict[str, tuple[str, Match]] = {}
    for zip_code, name, state in aliases:
        if keys.has_figures((zip_code,)):
            continue
        match = keys.resolve(None, name, state)
        if isinstance(match, Match) and not keys.has_figures(match.keys) and any(_known(keys, match.cities)):
            found.setdefault(match.query, (f"{name}, {state}", match))
    if not found:
        return []
    return [
        make_finding(
            "barren-alias",
            f"{len(found):,} alias(es) lead only to ZIP codes without figures although their town has figures",
            table=ALIASES.name,
            column="city_name",
            count=len(found),
            samples=tuple(
                f"{name} finds {', '.join(match.keys[:_MOST_KEYS])} in {'; '.join(match.cities)}"
                for name, match in list(found.values())[:_MOST_NAMED]
            ),
        )
    ]


def _known(keys: KeySet, cities: Iterable[str]) -> Iterator[bool]:
    """For each city ("Dickinson, AL"), whether it has figures."""
    for city in cities:
        _, _, state = city.rpartition(", ")
        match = keys.resolve(None, strip_state(city, state), state)
        yield isinstance(match, Match) and keys.has_figures(match.keys)

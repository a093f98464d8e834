"""What was seen since the last report, for the rankings of the operators' page."""

from service.base.masking import masked
from service.base.seen import Sighting, SightingKind

# Of each kind between two reports. What is asked often is among the first; the supervisor ranks (operators/ranking.py).
MOST_NAMES = 1_000
# Names are foreign text: each is kept for long, in several places.
_LONGEST_NAME = 120
_MOST_LOOKED_AT = 1_000  # characters: an escaped key is several times as long


class Sightings:
    """Counts of one worker, which owns it: by kind, name and detail, until they are told."""

    def __init__(self) -> None:
        self._seen: dict[SightingKind, dict[tuple[str, str], int]] = {}

    def add(self, kind: SightingKind, name: str, detail: str = "", count: int = 1) -> None:
        seen = self._seen.get(kind)
        if seen is None:
            seen = self._seen[kind] = {}
        key = (shortened(name), detail)
        before = seen.get(key)
        if before is not None:
            seen[key] = before + count
        elif len(seen) < MOST_NAMES:
            seen[key] = count

    def take(self) -> list[Sighting]:
        """What was seen since the last call."""
        seen, self._seen = self._seen, {}
        return [
            Sighting(kind, name, detail, count)
            for kind, names in seen.items()
            for (name, detail), count in names.items()
        ]


def shortened(text: str) -> str:
    """`text`, or its beginning, without keys. They are masked first: of a key that is cut, less would be recognised."""
    text = masked(text[:_MOST_LOOKED_AT])
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"

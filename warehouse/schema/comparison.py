"""The result of comparing two releases, or a drop with the current release.

Built once by warehouse/compare, immutable, kept in reports and printed by commands. "Old" is the earlier release.
"""

import msgspec


class FigureChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one figure changed nationwide. Part of a `Comparison`."""

    figure: str  # "population 2023" or the name of a housing figure
    old_total: int | None  # people or homes; None if no ZIP code has the figure
    new_total: int | None
    old_count: int  # ZIP codes that have the figure
    new_count: int
    changed: int  # ZIP codes with another value
    gained: int  # ZIP codes that only the new release has a value for
    lost: int  # ZIP codes that only the old release has a value for

    @property
    def drift(self) -> float | None:
        """Change of the total as a share of the old one. None if either total is missing, or the old one is 0."""
        if not self.old_total or self.new_total is None:
            return None
        return (self.new_total - self.old_total) / self.old_total


class Mover(msgspec.Struct, frozen=True):
    """One of the figures that changed most, in people or homes. Part of a `Comparison`."""

    zip_code: str
    figure: str
    old: int
    new: int


class PlaceChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How the ZIP codes that have a location changed. Part of a `Comparison`."""

    old_count: int
    new_count: int
    gained: dict[str, int]  # by state
    lost: dict[str, int]  # by state
    gained_samples: tuple[str, ...]
    lost_samples: tuple[str, ...]
    changed: int  # ZIP codes that were renamed or moved


class RecordChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How a table whose rows have ids (`Table.has_ids`) changed, compared by id. Part of a `Comparison`."""

    old_count: int  # rows that a query could find
    gained: int
    lost: int
    changed: int
    lost_samples: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs between two releases."""

    rows: dict[str, tuple[int | None, int | None]]  # by table: (old, new); None if a release lacks the table
    places: PlaceChanges
    figures: tuple[FigureChange, ...]
    movers: tuple[Mover, ...]  # largest change first
    changed_zip_codes: int  # ZIP codes with any figure that differs
    records: dict[str, RecordChanges] = {}  # by table

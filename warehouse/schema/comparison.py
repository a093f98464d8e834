"""What a comparison of two releases says."""

import msgspec


class FigureChange(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over the whole country. Totals are None where no ZIP code has the figure."""

    figure: str
    old_total: int | None
    new_total: int | None
    old_count: int
    new_count: int
    changed: int
    gained: int
    lost: int

    @property
    def drift(self) -> float | None:
        """Relative change of the total, None where one side has none."""
        if not self.old_total or self.new_total is None:
            return None
        return (self.new_total - self.old_total) / self.old_total


class Mover(msgspec.Struct, frozen=True):
    zip_code: str
    figure: str
    old: int
    new: int


class PlaceChanges(msgspec.Struct, frozen=True, kw_only=True):
    """ZIP codes with a location: how many, and by state how many came and went."""

    old_count: int
    new_count: int
    gained: dict[str, int]
    lost: dict[str, int]
    gained_samples: tuple[str, ...]
    lost_samples: tuple[str, ...]
    changed: int


class RecordChanges(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows have ids, in both releases: how many there were, and by id how many came, went or changed."""

    old_count: int
    gained: int
    lost: int
    changed: int
    lost_samples: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`rows` is by table: (old, new), None where a release lacks the table. `records`: tables whose rows have ids."""

    rows: dict[str, tuple[int | None, int | None]]
    places: PlaceChanges
    figures: tuple[FigureChange, ...]
    movers: tuple[Mover, ...]
    changed_zip_codes: int
    records: dict[str, RecordChanges] = {}

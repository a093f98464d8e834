"""The result of comparing two releases, or a drop with the current release.

Built once by warehouse/compare, immutable, stored in reports and printed by commands. "Old" is the earlier release.
"""

import msgspec


class FigureChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one figure changed, in the whole country or in a state. Part of a `Comparison`."""

    figure: str  # "population 2023" or the name of a housing figure
    old_total: int | None  # people or homes; None if no ZIP code has the figure
    new_total: int | None
    old_count: int  # ZIP codes that have the figure
    new_count: int
    changed: int  # ZIP codes with another value
    gained: int  # ZIP codes that only the new release has a value for
    lost: int  # ZIP codes that only the old release has a value for
    moved: int = 0  # people or homes: the sum of changes of all ZIP codes, up or down; lost ones in full
    gained_total: int = 0  # people or homes of ZIP codes that only the new release has a value for

    @property
    def drift(self) -> float | None:
        """The change of the total as a share of the old one. None if either total is missing, or the old one is 0.

        ZIP codes that gain a figure do not count: filling gaps moves no figure.
        """
        if not self.old_total or self.new_total is None:
            return None
        return (self.new_total - self.gained_total - self.old_total) / self.old_total

    @property
    def moved_share(self) -> float:
        """`moved` as a share of the old total; 0 without one. Also detects shuffled figures, whose total stays."""
        return self.moved / self.old_total if self.old_total else 0.0


class Mover(msgspec.Struct, frozen=True):
    """One of the ZIP codes with the largest changes, in people or homes. Part of a `Comparison`."""

    zip_code: str
    figure: str  # the one that changed most
    old: int
    new: int
    others: int = 0  # number of other changed figures of the ZIP code
    city_name: str | None = None
    state: str | None = None


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
    columns: dict[str, int] = {}  # by column: rows whose value changed; only columns with changes
    moves: dict[str, tuple[str, ...]] = {}  # by column: its commonest changes, such as "Proposed to Completed (12)"
    suspicions: dict[str, str] = {}  # by column: what many of its changes suggest
    suspects: dict[str, int] = {}  # by column: how many do
    lost_samples: tuple[str, ...] = ()
    emptied: dict[str, int] = {}  # by state: rows, all of which are gone

    @property
    def common(self) -> int:
        """The number of rows in both releases."""
        return self.old_count - self.lost


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one state changed. Part of a `Comparison`."""

    state: str  # its code; "" if rows name none
    rows: dict[str, tuple[int, int]]  # by table: (old, new)
    gained: int  # ZIP codes
    lost: int
    changed: int  # ZIP codes of both releases whose answer differs
    without: int  # ZIP codes of both releases that lose a figure
    figures: tuple[FigureChange, ...]  # the key figures of the comparison, and the one that moved most

    @property
    def most_moved(self) -> FigureChange | None:
        """The figure that moved most as a share of its old total. None if none moved."""
        moved = [figure for figure in self.figures if figure.moved_share]
        return max(moved, key=lambda figure: figure.moved_share, default=None)

    @property
    def lost_share(self) -> float:
        """The share of its ZIP codes that are lost or lose a figure."""
        old = self.rows.get("locations", (0, 0))[0]
        return (self.lost + self.without) / old if old else 0.0


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """How one figure is distributed among ZIP codes, before and after. Part of a `Comparison`."""

    figure: str
    changes: tuple[int, ...]  # ZIP codes by relative change, see CHANGE_STEPS
    old_sizes: tuple[int, ...]  # ZIP codes by the number of digits of their value; the first count is for 0
    new_sizes: tuple[int, ...]


# Labels for `Distribution.changes`, from the lowest change.
CHANGE_STEPS = (
    "below −50%",
    "−50 to −20%",
    "−20 to −5%",
    "−5 to −1%",
    "−1 to 0%",
    "same",
    "0 to +1%",
    "+1 to +5%",
    "+5 to +20%",
    "+20 to +50%",
    "above +50%",
)
# Labels for `Distribution.old_sizes` and `new_sizes`.
SIZE_STEPS = ("0", "1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 to 99,999", "100,000 or more")


class FieldChange(msgspec.Struct, frozen=True):
    """A field of an answer that differs. None: the answer lacks it."""

    name: str
    old: str | float | None
    new: str | float | None


class AnswerExample(msgspec.Struct, frozen=True, kw_only=True):
    """One ZIP code's answer, before and after. Part of `AnswerChanges`."""

    zip_code: str
    why: str  # the reason for its choice
    fields: tuple[FieldChange, ...]  # changed ones: figures, then those of the location
    more: int  # number of other changed fields


class AnswerChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes for partners, who get one answer for each ZIP code and one for each city. Part of a `Comparison`.

    Cities are those of locations, and acceptable aliases unless a city has the same name.
    """

    gained: int  # ZIP codes
    lost: int
    changed: int
    without: int  # changed ones that lose a figure
    cities_gained: int
    cities_lost: int
    cities_changed: int  # cities with other ZIP codes, or other answers for them
    old_figures: int  # in the answers of all ZIP codes
    new_figures: int
    examples: tuple[AnswerExample, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs between two releases.

    Members with defaults were added later: reports of earlier versions lack them.
    """

    rows: dict[str, tuple[int | None, int | None]]  # by table: (old, new); None if a release lacks the table
    places: PlaceChanges
    figures: tuple[FigureChange, ...]
    movers: tuple[Mover, ...]  # largest change first, one for each ZIP code
    changed_zip_codes: int  # ZIP codes with a changed figure
    records: dict[str, RecordChanges] = {}  # by table
    key_figures: tuple[str, ...] = ()  # those shown for each state: the latest counted population and homes, and demand
    states: tuple[StateChange, ...] = ()  # by code
    distributions: tuple[Distribution, ...] = ()  # of the figures that moved most, largest first
    answers: AnswerChanges | None = None

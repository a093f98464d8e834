"""Rules on data that is well-formed and may be wrong, of one release or against the release before. All are SQL.

Limits were set from two real national drops, with room for revisions, new years and new places. Figures that are still
open to revision (forecasts, and the latest years) may move twice as far as others. In a single state, ten times the
share of ZIP codes may be at fault that may be in the whole country.
"""

from typing import Literal

from warehouse.rules.rule import OPEN_FIGURES, Rule, Unit
from warehouse.schema.findings import Severity
from warehouse.schema.tables import ALIASES, LOCATIONS


class PlausibilityRule(Rule, frozen=True, kw_only=True):
    """A rule on totals, cells or places. Its statement has its name, with underscores for hyphens.

    Of totals, the statement gives a row for each state (or NULL) and figure beyond the limit: how far it goes, how many
    ZIP codes, a line of text. Of cells, it gives the figures at fault of single ZIP codes. Of places, it gives the ZIP
    codes at fault.
    """

    asks: Literal["totals", "cells", "places"]
    among: str = "new_places"  # FROM expression for the ZIP codes that those at fault are a share of
    compares: bool = True  # with the release before
    told: str  # what was found: "`told` in TX", or "12 of 42,094 ZIP codes `told`"
    cause: str  # what it is likely to come from
    severity: Severity = "error"
    override: bool = True
    unit: Unit = "share"
    by_state: bool = True
    remedy: str | None = "check the export against its source"

    @property
    def table(self) -> str:
        """The table of the places that it judges."""
        return ALIASES.name if "alias" in self.name else LOCATIONS.name

    @property
    def query(self) -> str:
        """The name of the statement."""
        return self.name.replace("-", "_")


_MOVED = (
    "figures-moved",
    "leaping-figure",
    "absurd-figure",
    "zeroed-figure",
    "state-drift",
    "total-drift",
    "slow-drift",
)
_SERIES = ("series-drift", "series-shuffled", "series-leap")
_RATIOS = ("people-per-home", "demand-beside-homes", "homes-unlike-people")

FIGURE_RULES: tuple[PlausibilityRule, ...] = (
    PlausibilityRule(
        name="figures-exchanged",
        asks="totals",
        limit=0.7,
        about="How much better a figure resembles the former values of another than its own; 100%: it has them.",
        told="figures have the former values of others",
        cause="two columns or years may be exchanged, or one was exported twice",
        explains=("figures-shuffled", "repeated-figure", *_MOVED, *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="uniform-scale",
        asks="totals",
        limit=0.03,
        about="Share by which figures moved alike nearly everywhere in a state; "
        f"{OPEN_FIGURES} may move five times as far.",
        told="figures moved by the same share everywhere",
        cause="they may be in another unit, scaled, or added up twice",
        explains=("figures-exchanged", *_MOVED, *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="figures-shuffled",
        asks="totals",
        limit=0.04,
        about="How little a figure resembles its former values in a state: 1 less the correlation of their logarithms.",
        told="figures hardly resemble their former values",
        cause="they may be shuffled or shifted among ZIP codes",
        explains=(*_MOVED, *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="figures-moved",
        asks="totals",
        limit=0.1,
        about="Share of the larger ZIP codes of a state whose figure moved by over a third.",
        told="figures moved by over a third in many ZIP codes",
        cause="they may be shuffled, or joined to the wrong ZIP codes",
        explains=("leaping-figure", "state-drift", "total-drift", "slow-drift", *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="absurd-figure",
        asks="cells",
        by_state=False,
        limit=0,
        unit="ZIP codes",
        about="ZIP codes whose figure became more than twenty times as large, and 5,000 or more.",
        told="figures became absurdly large",
        cause="they may be in another unit, or stand for something else",
        explains=("leaping-figure", "figures-moved", "state-drift", "total-drift", "slow-drift", *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="leaping-figure",
        asks="cells",
        by_state=False,
        limit=5,
        unit="ZIP codes",
        about="Larger ZIP codes whose figure became more than five times as large or as small.",
        told="figures leapt in many ZIP codes",
        cause="a few may be shuffled, misplaced or in another unit",
        explains=("state-drift", "total-drift", "slow-drift", "series-leap", "series-drift"),
    ),
    PlausibilityRule(
        name="zeroed-figure",
        asks="cells",
        by_state=False,
        limit=2,
        unit="ZIP codes",
        about="ZIP codes whose figure was 200 or more and became 0.",
        told="figures became 0",
        cause="0 may stand for an unknown figure, which must be empty",
        explains=("leaping-figure", "figures-moved", "state-drift", "total-drift", "slow-drift", *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="zeros-gained",
        asks="totals",
        limit=0.03,
        about="Share of a state's ZIP codes whose figure became 0, however small it was.",
        told="figures became 0 in many ZIP codes",
        cause="0 may stand for an unknown figure, which must be empty",
        explains=("zeroed-figure", "leaping-figure", "figures-moved", "state-drift", "total-drift", "slow-drift"),
    ),
    PlausibilityRule(
        name="sentinel-figure",
        asks="cells",
        by_state=False,
        compares=False,
        limit=1,
        unit="ZIP codes",
        about="ZIP codes with a new figure of 9999, 99999 or 999999.",
        told="figures look like a mark for unknown",
        cause="a number may stand for an unknown figure, which must be empty",
        explains=("repeated-value", "figures-shuffled", *_MOVED, *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="repeated-value",
        asks="cells",
        by_state=False,
        compares=False,
        limit=25,
        unit="ZIP codes",
        about="ZIP codes that share one figure of 1,000 or more.",
        told="many ZIP codes have the same figure",
        cause="a default, or one total for all, may have been filled in",
        explains=("figures-shuffled", *_MOVED, *_SERIES, *_RATIOS),
    ),
    PlausibilityRule(
        name="repeated-figure",
        asks="totals",
        by_state=False,
        compares=False,
        limit=0.5,
        about="Share of the larger ZIP codes in which two years or housing figures are equal.",
        told="figures are equal to others in most ZIP codes",
        cause="one column may have been exported twice",
        explains=_SERIES,
    ),
    PlausibilityRule(
        name="state-drift",
        asks="totals",
        limit=0.06,
        about="Change of a state's total, up or down, as a share of the old total.",
        told="totals of states moved far",
        cause="a part of the figures may be in another unit, stale, or from another source",
        explains=("total-drift", "slow-drift", "series-drift", *_RATIOS),
    ),
    PlausibilityRule(
        name="coverage-lost-in-state",
        asks="totals",
        limit=0.08,
        about="Share of a state's ZIP codes with a figure that lost it.",
        told="figures are gone in many ZIP codes",
        cause="a part of the export may be missing, or a join lost rows",
        explains=("coverage-lost", "coverage-lost-in-county", "total-drift", "slow-loss"),
    ),
    PlausibilityRule(
        name="coverage-lost-in-county",
        asks="totals",
        limit=0.5,
        about="Share of the ZIP codes of a county, ten or more, that lost a figure.",
        told="figures are gone in most ZIP codes of a county",
        cause="a part of the export may be missing, or a join lost rows",
        explains=("coverage-lost", "total-drift", "slow-loss"),
    ),
    PlausibilityRule(
        name="series-drift",
        asks="totals",
        compares=False,
        limit=0.06,
        about="Change of a state's total from one year to the next, as a share for each year between.",
        told="totals of states leap from one year to the next",
        cause="a year may be in another unit, incomplete, or from another source",
    ),
    PlausibilityRule(
        name="series-shuffled",
        asks="totals",
        compares=False,
        limit=0.1,
        about="How little a year resembles the year before in a state: 1 less the correlation of their logarithms.",
        told="years hardly resemble the year before",
        cause="a year may be shuffled among ZIP codes, or be another column",
        explains=("series-drift", "series-leap", "homes-unlike-people"),
    ),
    PlausibilityRule(
        name="series-leap",
        asks="totals",
        by_state=False,
        compares=False,
        limit=60,
        unit="ZIP codes",
        about="Larger ZIP codes whose figure changes by more than five times from one year to the next.",
        told="years leap in many ZIP codes",
        cause="a year may be shuffled, or in another unit in places",
        explains=("series-drift",),
    ),
    PlausibilityRule(
        name="people-per-home",
        asks="totals",
        compares=False,
        limit=0.4,
        about="How far a state is from 2.25 people for each home, as a share of it.",
        told="people and homes do not go together",
        cause="population and housing may be exchanged, or in another unit",
    ),
    PlausibilityRule(
        name="demand-beside-homes",
        asks="totals",
        compares=False,
        limit=0.3,
        about="How far a state's demand for homes is from the homes it has, as a share of them.",
        told="demand and homes do not go together",
        cause="demand may be another column, or in another unit",
    ),
    PlausibilityRule(
        name="homes-unlike-people",
        asks="totals",
        compares=False,
        limit=0.35,
        about="How little homes go with people, or demand with homes: 1 less the correlation of their logarithms.",
        told="homes hardly go with people, or demand with homes",
        cause="one of them may be shuffled among ZIP codes",
        explains=("people-per-home", "demand-beside-homes"),
    ),
)

# Compared with the baseline: the oldest release kept, or the last one of which somebody accepted a change.
BASELINE_RULES = (
    PlausibilityRule(
        name="slow-drift",
        asks="totals",
        state_factor=2,
        limit=0.06,
        about="Change of a national total since the baseline, the oldest release kept; in a state twice as much.",
        told="totals moved far",
        cause="small changes of each month may add up",
    ),
    PlausibilityRule(
        name="slow-loss",
        asks="totals",
        state_factor=5,
        limit=0.02,
        about="Share of the ZIP codes with a figure in the baseline that lack it now; in a state five times as many.",
        told="figures were lost",
        cause="small losses of each month may add up",
    ),
)

STATES_LOST = PlausibilityRule(
    name="zip-codes-lost",
    asks="places",
    state_factor=10,
    among="old_places",
    limit=0.005,
    about="Share of the current release's ZIP codes that the drop lacks.",
    told="are gone",
    cause="a state or a part of the export may be missing",
    explains=(
        "coverage-lost",
        "coverage-lost-in-state",
        "coverage-lost-in-county",
        "slow-loss",
        "total-drift",
        "rows-lost",
        "aliases-lost",
        "records-lost",
    ),
)

PLACE_RULES: tuple[PlausibilityRule, ...] = (
    STATES_LOST,
    PlausibilityRule(
        name="place-value-lost",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.02,
        about="Share of the ZIP codes that lost their county or coordinates.",
        told="lost their county or coordinates",
        cause="a join may have lost them",
        explains=("place-value-missing",),
    ),
    PlausibilityRule(
        name="place-value-missing",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.02,
        about="Share of the ZIP codes without a county or coordinates, military ones aside.",
        told="have no county or coordinates",
        cause="a join may have lost them",
    ),
    PlausibilityRule(
        name="place-outside-state",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.005,
        about="Share of the ZIP codes whose coordinates are outside their state.",
        told="have coordinates outside their state",
        cause="latitude and longitude may be exchanged, 0, or without a sign, or the states may be wrong",
        explains=("moved-place", "scattered-place", "same-place"),
    ),
    PlausibilityRule(
        name="zip-of-other-state",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.001,
        about="Share of the ZIP codes whose first three digits belong to another state.",
        told="belong to another state by their first three digits",
        cause="states may be exchanged or shuffled",
        explains=(
            "state-changed",
            "county-of-other-state",
            "place-outside-state",
            "alias-of-other-state",
            "scattered-place",
            "county-name-differs",
            "figures-exchanged",
            "figures-shuffled",
        ),
    ),
    PlausibilityRule(
        name="state-changed",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.001,
        about="Share of the ZIP codes that are in another state than before.",
        told="are in another state than before",
        cause="states may be exchanged or shuffled",
        explains=("county-of-other-state", "place-outside-state", "alias-of-other-state"),
    ),
    PlausibilityRule(
        name="county-of-other-state",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.01,
        about="Share of the ZIP codes whose county code begins with the number of another state.",
        told="have a county code of another state",
        cause="county codes may be shuffled, or one may have been filled in everywhere",
        explains=("other-county", "county-name-differs", "scattered-place", "same-place"),
    ),
    PlausibilityRule(
        name="same-place",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.001,
        about="Share of the ZIP codes in one county of over 1,500, or at one point with over 500 others.",
        told="share one county, or one point",
        cause="a default may have been filled in everywhere",
        explains=("other-county", "moved-place", "scattered-place", "county-name-differs"),
    ),
    PlausibilityRule(
        name="county-name-differs",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.005,
        about="Share of the ZIP codes whose county has another name in most ZIP codes with its code.",
        told="have another county name than others with their county code",
        cause="county names or codes may be shuffled",
        explains=("other-county",),
    ),
    PlausibilityRule(
        name="other-county",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.02,
        about="Share of the ZIP codes now in a county, by code or name, that others were in before; new ones aside.",
        told="are in another county of those known before",
        cause="counties may be shuffled or exchanged",
        explains=("scattered-place",),
    ),
    PlausibilityRule(
        name="other-city",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.01,
        about="Share of the ZIP codes that now have a city that others of the state had before; new names aside.",
        told="are in another city of those known before",
        cause="cities may be shuffled or exchanged",
        explains=("renamed-city", "primary-alias-differs"),
    ),
    PlausibilityRule(
        name="city-like-county",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.01,
        about="Share of the ZIP codes whose city is called a county.",
        told="have a city that is called a county",
        cause="cities and counties may be exchanged",
        explains=(
            "renamed-city",
            "primary-alias-differs",
            "county-name-differs",
            "other-city",
            "name-cut",
            "cut-to-length",
        ),
    ),
    PlausibilityRule(
        name="cut-to-length",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.005,
        about="Share of the ZIP codes whose city is as long as the longest one.",
        told="have a city of exactly the greatest length",
        cause="names may have been cut off",
        explains=("name-cut", "renamed-city", "other-city", "primary-alias-differs"),
    ),
    PlausibilityRule(
        name="name-cut",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.002,
        about="Share of the ZIP codes whose city or county is only the beginning of its former name.",
        told="have a name that is only the beginning of the former one",
        cause="names may have been cut off, or lost a word",
        explains=("renamed-city", "other-city", "primary-alias-differs", "county-name-differs"),
    ),
    PlausibilityRule(
        name="renamed-city",
        asks="places",
        state_factor=10,
        among="old_places",
        limit=0.05,
        about="Share of the ZIP codes whose city has a new name, beyond case, accents and punctuation.",
        told="have another city name",
        cause="cities may come from another column or source",
        explains=("primary-alias-differs",),
    ),
    PlausibilityRule(
        name="moved-place",
        asks="places",
        state_factor=10,
        limit=0.01,
        about="Share of the ZIP codes whose coordinates moved by more than 25 km.",
        told="moved by more than 25 km",
        cause="coordinates may be shuffled, or of something else",
        explains=("scattered-place",),
    ),
    PlausibilityRule(
        name="scattered-place",
        asks="places",
        state_factor=10,
        compares=False,
        limit=0.05,
        about="Share of the ZIP codes that are more than 100 km from the middle of their county.",
        told="are more than 100 km from the middle of their county",
        cause="coordinates or counties may be shuffled",
    ),
    PlausibilityRule(
        name="alias-of-other-state",
        asks="places",
        state_factor=10,
        among="new_aliases",
        compares=False,
        limit=0.005,
        about="Share of the aliases that are in another state than their ZIP code.",
        told="are in another state than their ZIP code",
        cause="aliases may be shifted among ZIP codes",
        explains=("aliases-gained", "aliases-lost", "primary-alias-differs"),
    ),
    PlausibilityRule(
        name="primary-alias-differs",
        asks="places",
        state_factor=10,
        among="new_aliases WHERE status = 'primary'",
        compares=False,
        limit=0.05,
        about="Share of the primary aliases that are not the city of their ZIP code.",
        told="are primary and not the city of their ZIP code",
        cause="aliases or cities may be shuffled, or from another month",
        explains=("aliases-gained", "aliases-lost"),
    ),
    PlausibilityRule(
        name="alias-status-changed",
        asks="places",
        state_factor=10,
        among="old_aliases",
        limit=0.05,
        about="Share of the aliases that have another status than before.",
        told="have another status",
        cause="acceptable and unacceptable names may be exchanged",
    ),
    PlausibilityRule(
        name="aliases-gained",
        asks="places",
        state_factor=10,
        among="new_aliases",
        limit=0.2,
        about="Share of the aliases that the current release lacks, of ZIP codes that have aliases in it.",
        told="are new",
        cause="a join may have multiplied aliases, or they may be shuffled",
    ),
    PlausibilityRule(
        name="aliases-lost",
        asks="places",
        state_factor=10,
        among="old_aliases",
        limit=0.1,
        about="Share of the current release's aliases that the drop lacks.",
        told="are gone",
        cause="aliases may be shuffled, or a part of them missing",
        explains=("rows-lost", "aliases-gained"),
    ),
)

PLAUSIBILITY_RULES = (*FIGURE_RULES, *BASELINE_RULES, *PLACE_RULES)

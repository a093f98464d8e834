"""What follows from an error stands below it, and nothing else does."""

import pytest

from warehouse.rules.all_rules import make_finding
from warehouse.rules.folding import fold
from warehouse.schema.findings import Finding, make_report
from warehouse.schema.tables import HOUSING_FIGURES

POPULATION = ("population 2010", "population 2011")


def vanished(*figures: str, places: int = 1000) -> Finding:
    return make_finding(
        "vanished-figure", "they are gone", figures=figures, count=places, measured=len(figures), samples=figures[:5]
    )


def lacking(*figures: str) -> Finding:
    return make_finding(
        "missing-figure", "it lacks them", table="housing", column=figures[0], figures=figures, count=len(figures)
    )


def unreadable(table: str, column: str | None = None, rows: int = 1000, rule: str = "unreadable-value") -> Finding:
    return make_finding(rule, "it cannot be read", table=table, column=column, count=rows)


def damaged(table: str | None) -> Finding:
    return make_finding("unreadable-file", "it is damaged", table=table)


def empty(table: str) -> Finding:
    return make_finding("empty-table", "it has no rows", table=table)


def lost(places: int) -> Finding:
    return make_finding("zip-codes-lost", "they are gone", table="locations", count=places, measured=0.9)


@pytest.mark.parametrize(
    ("causes", "figures"),
    [
        ([damaged("housing")], HOUSING_FIGURES),
        ([empty("housing")], HOUSING_FIGURES),
        ([empty("population")], POPULATION),
        ([damaged("housing"), empty("population")], (*HOUSING_FIGURES, *POPULATION)),
        ([unreadable("housing", HOUSING_FIGURES[1], rule="out-of-range")], HOUSING_FIGURES[1:2]),
        ([unreadable("housing", name) for name in HOUSING_FIGURES[:2]], HOUSING_FIGURES[:2]),
        ([unreadable("housing", "zip_code", 600)], HOUSING_FIGURES),
        ([unreadable("housing", "zip_code", 300), unreadable("housing", "zip_code", 300)], HOUSING_FIGURES),
        ([unreadable("population", "tot_population")], POPULATION),
        ([lacking(*HOUSING_FIGURES[:2])], HOUSING_FIGURES[:1]),
        ([lacking(HOUSING_FIGURES[0]), lacking(HOUSING_FIGURES[1])], HOUSING_FIGURES[:2]),
        ([lost(1000)], (*HOUSING_FIGURES, *POPULATION)),
    ],
)
def test_a_figure_that_could_not_be_read_vanishes_because_of_that(
    causes: list[Finding], figures: tuple[str, ...]
) -> None:
    """Its cause stands above it, and is all that is left to correct."""
    report = make_report(fold([*causes, vanished(*figures)]))
    assert [one.rule for one in report.findings] == [*(one.rule for one in causes[:1]), *_rest(causes)]
    assert next(one for one in report.findings if one.rule == "vanished-figure").remedy is None


def _rest(causes: list[Finding]) -> list[str]:
    """The rules after the first cause; the vanished figures stand below the last finding of its rule."""
    alike = [one.rule for one in causes[1:] if one.rule == causes[0].rule]
    others = [one.rule for one in causes[1:] if one.rule != causes[0].rule]
    return [*alike, "vanished-figure", *others]


@pytest.mark.parametrize(
    ("causes", "figures"),
    [
        ([damaged(None)], HOUSING_FIGURES),
        ([damaged("population")], HOUSING_FIGURES),
        ([damaged("housing")], (*HOUSING_FIGURES, *POPULATION)),
        ([unreadable("housing", HOUSING_FIGURES[1])], HOUSING_FIGURES[:1]),
        ([unreadable("housing", HOUSING_FIGURES[1])], HOUSING_FIGURES[:2]),
        ([unreadable("housing", "zip_code", 400)], HOUSING_FIGURES),
        ([unreadable("population", "year", 3)], POPULATION),
        ([lacking(HOUSING_FIGURES[0])], HOUSING_FIGURES[:2]),
        ([lacking(HOUSING_FIGURES[0])], POPULATION),
        ([lost(999)], POPULATION),
    ],
)
def test_a_figure_that_is_gone_for_another_reason_stands_for_itself(
    causes: list[Finding], figures: tuple[str, ...]
) -> None:
    gone = vanished(*figures)
    folded = fold([*causes, gone])
    assert folded[-1] == gone
    assert folded == [*causes, gone]


def test_a_file_that_cannot_be_read_explains_every_change_of_its_table() -> None:
    """However many places the change concerns: it is unknown how many rows the file had."""
    moved = make_finding("aliases-lost", "less than before", table="aliases", count=80_000, measured=0.9)
    assert [one.follows for one in fold([damaged("aliases"), moved])] == [None, "unreadable-file"]


def test_what_follows_from_a_follow_on_stands_below_the_cause_of_both() -> None:
    found = [unreadable("locations", "zip_code"), lost(1000), vanished(*POPULATION)]
    assert [one.follows for one in fold(found)] == [None, "unreadable-value", "unreadable-value"]


def accepting(finding: Finding) -> list[str]:
    """The options that a finding suggests, to publish in spite of it."""
    offered = (finding.remedy or "").partition("publish with ")[2].removesuffix(" --reason TEXT")
    return [option for option in offered.split("--accept ") if option]


def test_a_cause_suggests_to_accept_what_follows_from_it_as_well() -> None:
    """As far as it goes. Otherwise whoever accepts the cause is refused again."""
    cause, _ = fold([lacking(HOUSING_FIGURES[0]), vanished(HOUSING_FIGURES[0])])
    assert cause.remedy == (
        "export it; if it is right, publish with --accept missing-figure --accept vanished-figure=1 --reason TEXT"
    )


def test_the_bounds_of_all_that_follows_are_suggested() -> None:
    """Of several bounds, the farthest counts."""
    drifts = [make_finding("total-drift", "it moved", table="housing", measured=share) for share in (0.2, 0.1)]
    cause = make_finding("uniform-scale", "all moved alike", measured=0.1, measured_in={"OH": 0.1, "TX": 0.2})
    assert [one.strip() for one in accepting(fold([*drifts, cause])[-1])] == [
        "uniform-scale:OH=10%",
        "uniform-scale:TX=20%",
        "total-drift=20%",
        "total-drift=10%",
    ]


def test_a_cause_is_not_to_be_accepted_if_what_follows_from_it_cannot_be() -> None:
    mixed = make_finding("mixed-months", "two months", table="housing")
    twice = make_finding("duplicate-key", "twice", table="housing", follows="mixed-months")
    cause, _ = fold([mixed, twice])
    assert cause.remedy == "deliver files of one month only"


def drifting(rule: str, states: dict[str, float], table: str = "population") -> Finding:
    return make_finding(rule, "it moved", table=table, measured=max(states.values()), measured_in=states)


def test_what_goes_further_than_the_states_of_a_cause_stands_for_itself() -> None:
    """Somebody who knows why figures of Texas moved need not know of New York."""
    scaled = drifting("uniform-scale", {"TX": 0.9})
    elsewhere, both = (
        drifting("demand-beside-homes", {"NY": 0.8}, "housing"),
        drifting("total-drift", {"TX": 1, "CA": 1}),
    )
    below, country = drifting("figures-moved", {"TX": 0.9}), drifting("total-drift", {"country": 0.1, "TX": 0.9})
    folded = fold([scaled, elsewhere, both, below, country])
    assert [one.follows for one in folded] == [None, None, None, "uniform-scale", "uniform-scale"]
    assert "NY" not in (folded[0].remedy or "")


def places(rule: str, number: int, *states: str, table: str = "locations") -> Finding:
    return make_finding(rule, "", table=table, count=number, measured=0.1, measured_in=dict.fromkeys(states, 0.1))


@pytest.mark.parametrize(
    ("findings", "follows"),
    [
        ((places("point-filled", 60, "TX"), places("moved-place", 100, "TX")), (None, "point-filled")),
        ((places("point-filled", 40, "TX"), places("moved-place", 100, "TX")), (None, None)),
        ((places("name-cut", 20, "TX"), places("renamed-city", 100, "country")), ("renamed-city", None)),
        ((places("name-cut", 30, "TX"), places("renamed-city", 100, "country")), (None, None)),
        ((places("point-filled", 60, "TX"), places("moved-place", 100, "TX", "OH")), (None, None)),
        (
            (places("state-changed", 18, "FM"), places("alias-of-other-state", 59, "FM", table="aliases")),
            (None, "state-changed"),
        ),
    ],
)
def test_a_specific_cause_explains_what_it_has_half_the_rows_of(
    findings: tuple[Finding, ...], follows: tuple[str | None, ...]
) -> None:
    """If it has only a few of them by chance, what is general explains it."""
    assert tuple(one.follows for one in fold(findings)) == follows


def figures(rule: str, *states: str, count: int = 100) -> Finding:
    measured = dict.fromkeys(states, 0.5)
    return make_finding(rule, "", figures=("population 2025",), count=count, measured=0.5, measured_in=measured)


@pytest.mark.parametrize(
    ("findings", "follows"),
    [
        ((figures("forecast-apart", "TX"), figures("series-shuffled", *"ABC", "TX")), ("series-shuffled", None)),
        ((figures("forecast-apart", "TX"), figures("series-shuffled", *"AB", "TX")), (None, None)),
        ((figures("forecast-apart", "TX"), figures("series-drift", *"ABC", "TX")), ("series-drift", None)),
        ((figures("forecast-apart", "TX"), figures("total-drift", *"ABC", "TX")), (None, None)),
        (
            (figures("forecast-apart", "TX"), figures("series-leap"), figures("series-shuffled", *"ABC", "TX")),
            ("series-shuffled", "series-shuffled", None),
        ),
    ],
)
def test_a_cause_in_a_few_of_the_states_is_outweighed_by_one_in_all(
    findings: tuple[Finding, ...], follows: tuple[str | None, ...]
) -> None:
    """A total says least, so it outweighs nothing."""
    assert tuple(one.follows for one in fold(findings)) == follows

"""Errors are accepted by name and up to a bound; settings change severities."""

from datetime import UTC, datetime

import pytest

from warehouse.rules.acceptance import accept_found, check_acceptance, check_severities, judge, parse_acceptance, used
from warehouse.rules.all_rules import RULES, make_finding
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import COUNTRY, Acceptance, Finding

NOW = datetime(2026, 11, 5, 9, tzinfo=UTC)


def acceptance(*words: str) -> Acceptance:
    parsed = parse_acceptance(words, "new census base", "ann@here", NOW)
    assert parsed is not None
    return parsed


def drift(measured: float) -> Finding:
    return make_finding("total-drift", "it moved", measured=measured)


@pytest.mark.parametrize(("word", "bound"), [("total-drift=8%", 0.08), ("total-drift = 0.08", 0.08)])
def test_a_bound_is_a_share_or_a_percentage(word: str, bound: float) -> None:
    assert acceptance(word).limits == {"total-drift": bound}


def test_the_farthest_of_several_bounds_counts() -> None:
    assert acceptance("total-drift=20%", "total-drift=10%").limits == {"total-drift": 0.2}


def test_a_bound_may_be_a_count_where_the_limit_is_one() -> None:
    assert acceptance("vanished-figure=11").limits == {"vanished-figure": 11}


def test_a_rule_without_a_limit_is_accepted_by_name() -> None:
    accepted = acceptance("missing-figure")
    assert (accepted.rules, accepted.limits) == (("missing-figure",), {})


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("total-drift", "total-drift needs a bound, such as --accept total-drift=8%"),
        ("vanished-figure", "vanished-figure needs a bound, such as --accept vanished-figure=8"),
        ("total-drift=", "needs a bound"),
        ("total-drift=much", "expected a share such as 8%"),
        ("total-drift=-1%", "expected a share such as 8%"),
        ("total-drift=nan", "expected a share such as 8%"),
        ("total-drift=8", "would be 800%: write it as a percentage"),
        ("coverage-gained:TX=8%", "coverage-gained does not check each state by itself"),
        ("total-drift:TEX=8%", "no state has the code TEX; .* write total-drift:country=LIMIT"),
        ("total-drift=inf", "expected a share such as 8%"),
        ("vanished-figure=8%", "expected a number of figures"),
        ("missing-figure=3", "missing-figure has no limit: --accept missing-figure"),
        ("duplicate-key", "duplicate-key cannot be accepted: its findings must be corrected; `forecast extracts"),
        ("nonsense=3", "nonsense cannot be accepted: no rule has this name; `forecast extracts rules` lists all"),
        ("totaldrift=8%", r"totaldrift cannot be accepted: .* \(did you mean total-drift or .*\?\)"),
        ("ZIP_CODES_LOST=8%", r"did you mean zip-codes-lost or .*\?"),
    ],
)
def test_what_cannot_be_accepted_is_refused_with_the_reason(word: str, why: str) -> None:
    with pytest.raises(WarehouseError, match=why):
        acceptance(word)


def test_an_acceptance_made_elsewhere_needs_its_bounds_too() -> None:
    with pytest.raises(WarehouseError, match="total-drift needs a bound"):
        check_acceptance(Acceptance(rules=("total-drift",), reason="r", by="b", at=NOW))


def test_an_error_within_the_bound_becomes_a_warning_with_the_reason() -> None:
    (judged,) = judge([drift(0.08)], acceptance("total-drift=8%"))
    assert (judged.severity, judged.accepted) == ("warning", "new census base")


def test_an_error_beyond_the_bound_stays_one() -> None:
    (judged,) = judge([drift(0.081)], acceptance("total-drift=8%"))
    assert (judged.severity, judged.accepted) == ("error", None)


@pytest.mark.parametrize("measured", [0.0501, 0.07, 0.074, 3.21])
def test_the_remedy_names_a_bound_that_lets_the_finding_through(measured: float) -> None:
    found = drift(measured)
    word = (found.remedy or "").split("--accept ")[1].split()[0]
    assert judge([found], acceptance(word))[0].severity == "warning"


def test_what_was_found_is_accepted_as_far_as_it_goes() -> None:
    """Several findings of a rule: as far as the worst of them. Warnings need nobody's word."""
    found = [drift(0.06), drift(0.09), make_finding("missing-figure", "gone"), make_finding("orphan-rows", "some")]
    accepted = accept_found(found, "r", "b", NOW)
    assert (accepted.rules, accepted.limits) == (("total-drift", "missing-figure"), {"total-drift": 0.09})
    assert {one.severity for one in judge(found, accepted)} == {"warning"}
    assert judge([drift(0.091)], accepted)[0].severity == "error"


def lost(country: float | None = None, **states: float) -> Finding:
    places = states | ({} if country is None else {COUNTRY: country})
    return make_finding("zip-codes-lost", "they are gone", measured=0.1, measured_in=places)


@pytest.mark.parametrize(
    ("words", "covered"),
    [
        (["zip-codes-lost:RI=100%"], [lost(RI=1)]),
        (["zip-codes-lost:RI=90%"], []),
        (["zip-codes-lost:RI=100%", "zip-codes-lost:TX=100%"], [lost(RI=1), lost(RI=1, TX=1)]),
        (["zip-codes-lost:country=2%"], [lost(0.02)]),
        (["zip-codes-lost=2%"], [lost(0.02), lost(0.01, RI=0.2)]),
    ],
)
def test_an_acceptance_for_a_state_covers_that_state_alone(words: list[str], covered: list[Finding]) -> None:
    """One without a state covers the country, and in a state as many times more as the rule's limit does."""
    for found in (lost(RI=1), lost(RI=1, TX=1), lost(0.02), lost(0.01, RI=0.2)):
        (judged,) = judge([found], acceptance(*words))
        assert (judged.severity == "warning") is (found in covered)


def test_what_was_found_in_a_state_is_accepted_in_that_state() -> None:
    accepted = accept_found([lost(RI=1)], "r", "b", NOW)
    assert accepted.limits == {"zip-codes-lost:RI": 1}
    check_acceptance(accepted)


def test_the_remedy_names_the_states_if_they_are_few() -> None:
    assert "--accept zip-codes-lost:DC=41% --accept zip-codes-lost:RI=100% --reason" in (
        lost(RI=1, DC=0.41).remedy or ""
    )
    assert "--accept zip-codes-lost=10% --reason" in (lost(0.1, RI=1).remedy or "")
    assert "--accept zip-codes-lost=10% --reason" in (lost(RI=1, DC=1, TX=1, CA=1).remedy or "")


def test_what_let_nothing_through_is_not_remembered() -> None:
    """Whoever accepts every month, whether needed or not, has not looked at anything."""
    asked = acceptance("zip-codes-lost:RI=100%", "total-drift=8%", "missing-figure")
    assert used(asked, judge([lost(RI=1)], asked)) == acceptance("zip-codes-lost:RI=100%")
    assert used(asked, judge([drift(0.09)], asked)) is None
    assert used(None, []) is None


def test_what_was_found_cannot_be_accepted_if_one_error_cannot() -> None:
    with pytest.raises(WarehouseError, match="duplicate-key cannot be accepted"):
        accept_found([drift(0.06), make_finding("duplicate-key", "twice")], "r", "b", NOW)


def test_a_setting_raises_or_lowers_a_severity() -> None:
    found = [drift(0.06), make_finding("orphan-rows", "some")]
    judged = judge(found, None, {"total-drift": "info", "orphan-rows": "error"})
    assert [one.severity for one in judged] == ["info", "error"]


def test_strict_refuses_for_warnings_and_not_for_notes() -> None:
    found = [make_finding("orphan-rows", "some"), make_finding("carried-table", "kept")]
    assert [one.severity for one in judge(found, strict=True)] == ["error", "info"]


def test_a_severity_of_an_unknown_rule_is_refused() -> None:
    with pytest.raises(WarehouseError, match=r"no rule is called total-drif \(did you mean total-drift or .*\?\)"):
        check_severities({"total-drif": "info"})


def test_only_errors_that_can_be_accepted_can_be_lowered() -> None:
    for rule in (rule.name for rule in RULES.values() if rule.severity == "error"):
        if RULES[rule].override:
            check_severities({rule: "warning"})
        else:
            with pytest.raises(WarehouseError, match=f"{rule} must stay an error"):
                check_severities({rule: "warning"})

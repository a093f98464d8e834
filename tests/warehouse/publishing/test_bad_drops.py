"""Each kind of bad drop is refused with a finding that names its cause, and nothing that is served changes."""

from pathlib import Path

import pytest

from tests.support.publishing import publish
from tests.warehouse.bad_drops import BAD_DROPS, TOGETHER, Bad
from tests.warehouse.helpers import NO_LIMITS, contents, drops_of, errors
from tests.warehouse.helpers import publish as publish_good
from tests.warehouse.spoiling import good_drop
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import RULES

KINDS = [bad.kind for bad in BAD_DROPS]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A data folder with a good release, which no bad drop may change."""
    folder = tmp_path_factory.mktemp("served")
    catalog = Catalog(folder / "data")
    assert publish_good(catalog, good_drop(folder / "drop")).result == "published"
    return catalog


def limit_of(bad: Bad) -> dict[str, float]:
    """No drift limit but that of the rule that shall fire, so that it alone does."""
    limit = bad.limit if bad.limit is not None else RULES[bad.rule].limit
    return {} if limit is None else {bad.rule: limit}


def test_there_are_thirty_kinds_at_least_each_named_once() -> None:
    assert len(KINDS) >= 30
    assert len(set(KINDS)) == len(KINDS)


@pytest.mark.parametrize("kinds", drops_of(KINDS, TOGETHER), ids="+".join)
def test_a_bad_drop_is_refused_and_each_cause_named(served: Catalog, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """By its own rule alone, which says what to do about it, beside those of other faults."""
    faults = [bad for bad in BAD_DROPS if bad.kind in kinds]
    drop = good_drop(tmp_path / "drop")
    limits: dict[str, float] = {}
    for bad in faults:
        bad.spoil(drop)
        limits |= limit_of(bad)
    before = contents(served.data)
    outcome = publish(served, [str(drop)], PublishOptions(limits=NO_LIMITS | limits))
    assert contents(served.data) == before
    assert (outcome.result, outcome.manifest) == ("refused", served.current())
    assert set(errors(outcome)) == {bad.rule for bad in faults}
    for bad in faults:
        found = next(one for one in outcome.report.findings if one.severity == "error" and one.rule == bad.rule)
        assert bad.cause in " ".join((found.message, *found.samples, found.remedy or ""))
        assert found.remedy

"""Each kind of bad drop is refused with a finding that names its cause, and nothing that is served changes."""

from pathlib import Path

import pytest

from tests.warehouse.bad_drops import BAD_DROPS, Bad
from tests.warehouse.helpers import NO_LIMITS, contents, errors
from tests.warehouse.helpers import publish as publish_good
from tests.warehouse.spoiling import good_drop
from warehouse.publishing.publish import PublishOptions, publish
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import RULES


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A data folder with a good release, which no bad drop may change."""
    folder = tmp_path_factory.mktemp("served")
    catalog = Catalog(folder / "data")
    assert publish_good(catalog, good_drop(folder / "drop")).result == "published"
    return catalog


def options(bad: Bad) -> PublishOptions:
    """No drift limit but that of the rule that shall fire, so that it alone does."""
    limit = bad.limit if bad.limit is not None else RULES[bad.rule].limit
    return PublishOptions(limits=NO_LIMITS if limit is None else NO_LIMITS | {bad.rule: limit})


def test_there_are_thirty_kinds_at_least_each_named_once() -> None:
    kinds = [bad.kind for bad in BAD_DROPS]
    assert len(kinds) >= 30
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("bad", BAD_DROPS, ids=lambda bad: bad.kind)
def test_a_bad_drop_is_refused_and_the_cause_named(served: Catalog, tmp_path: Path, bad: Bad) -> None:
    """By its own rule alone, which says what to do about it."""
    drop = good_drop(tmp_path / "drop")
    bad.spoil(drop)
    before = contents(served.data)
    outcome = publish(served, [str(drop)], options(bad), reader=bad.reader)
    assert (outcome.result, outcome.manifest) == ("refused", served.current())
    assert set(errors(outcome)) == {bad.rule}
    found = next(one for one in outcome.report.findings if one.severity == "error")
    assert bad.cause in " ".join((found.message, *found.samples, found.remedy or ""))
    assert found.remedy
    assert contents(served.data) == before

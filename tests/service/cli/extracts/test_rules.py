"""forecast extracts rules: every rule that a drop is held to, documented, with the limit in force."""

import pytest

from tests.service.conftest import Cli
from warehouse.rules.all_rules import RULES

# What the rules have themselves; by default, tests of commands set limits that nothing exceeds.
DEFAULTS = {"limits": ", ".join(f"{rule.name}={rule.limit}" for rule in RULES.values() if rule.limit is not None)}


def test_every_rule_is_documented_in_text(cli: Cli) -> None:
    shown = cli("extracts", "rules", **DEFAULTS).out
    words = shown.split()
    for rule in RULES.values():
        assert {rule.name, rule.severity, *rule.about.split()} <= set(words), rule.name
    assert shown.count("(--accept)") == sum(rule.override for rule in RULES.values())


def test_every_rule_is_documented_as_json(cli: Cli) -> None:
    documented = {rule["name"]: rule for rule in cli("extracts", "rules", "--json", **DEFAULTS).json}
    assert list(documented) == list(RULES)
    for name, rule in RULES.items():
        shown = documented[name]
        assert set(shown) == {"name", "severity", "about", "remedy", "limit", "unit", "accept"}
        assert (shown["severity"], shown["about"], shown["remedy"]) == (rule.severity, rule.about, rule.remedy)
        assert (shown["limit"], shown["accept"]) == (rule.limit, rule.override)
        assert shown["unit"] == (rule.unit if rule.limit is not None else None)


def test_limits_that_were_set_are_shown(cli: Cli) -> None:
    limits = "total-drift=12.5%, too-many-rows=1000"
    shown = {rule["name"]: rule["limit"] for rule in cli("extracts", "rules", "--json", limits=limits).json}
    assert (shown["total-drift"], shown["too-many-rows"]) == (0.125, 1000)
    assert shown["aliases-lost"] == RULES["aliases-lost"].limit
    text = cli("extracts", "rules", limits=limits).out
    assert "12.5%" in text
    assert "1,000 rows" in text


@pytest.mark.parametrize("limits", ["total-drft=0.1", "duplicate-key=1"])
def test_a_limit_of_a_rule_that_has_none_is_named(cli: Cli, limits: str) -> None:
    done = cli("extracts", "rules", limits=limits)
    assert done.code == 1
    assert limits.partition("=")[0] in done.error()

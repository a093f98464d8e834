"""The terms of keys on the command line: what is given, what is changed, what makes no sense."""

import pytest

from tests.service.conftest import Cli, ids, issue

RATE = {"requests": 500, "seconds": 1, "burst": 100}
QUOTA = {"requests": 5_000_000, "period": "month"}
FULL = ("--areas", "forecast", "--rate", "500/s", "--burst", "100", "--quota", "5000000/month")


def test_a_key_is_issued_with_its_terms(cli: Cli, running: list[int]) -> None:
    assert issue(cli, "acme", *FULL)["terms"] == {"areas": ["forecast"], "rate": RATE, "quota": QUOTA}
    assert issue(cli)["terms"] == {}
    assert issue(cli, "acme", "--areas", "projects, forecast,projects")["terms"] == {"areas": ["forecast", "projects"]}
    warned = issue(cli, "acme", "--quota", "100/day", "--warn-at", "90%")["terms"]
    assert warned == {"quota": {"requests": 100, "period": "day", "warn_at": 0.9}}


def test_terms_are_changed_one_by_one(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli, "acme", *FULL)["key_id"]
    for options, terms in (
        (("--burst", "7"), {"areas": ["forecast"], "rate": {**RATE, "burst": 7}, "quota": QUOTA}),
        (("--no-rate",), {"areas": ["forecast"], "quota": QUOTA}),
        (("--warn-at", "50%"), {"areas": ["forecast"], "quota": {**QUOTA, "warn_at": 0.5}}),
        (
            ("--all-areas", "--rate", "30/min"),
            {"rate": {"requests": 30, "seconds": 60, "burst": 1}, "quota": {**QUOTA, "warn_at": 0.5}},
        ),
        (("--no-quota", "--no-rate", "--areas", "forecast"), {"areas": ["forecast"]}),
        (("--all-areas", "--rate", "500/s", "--burst", "100"), {"rate": RATE}),
    ):
        done = cli("keys", "change", key_id, *options, "--json")
        assert done.code == 0, done.err
        assert done.json["terms"] == terms
        assert cli("keys", "show", key_id, "--json").json["terms"] == terms
    done = cli("keys", "change", key_id, "--rate", "5/s", "--quota", "100/day")
    assert done.out == f"Key {key_id} of acme: 500/s (burst 100) → 5/s (burst 5); 100/day (warning at 80%)\n"


UNKNOWN = "0B1zQmX4ktLw"
ISSUE, CHANGE = ("issue", "--partner", "acme"), ("change", UNKNOWN)
MALFORMED = (
    (("--areas", "forecast,nonsense"), "area 'nonsense' does not exist; the areas are forecast, projects"),
    (("--areas", ""), "area '' does not exist"),
    (("--rate", "fast"), "write a rate as 500/s, 30/min or 1000/h"),
    (("--rate", "0/s"), "write a rate as"),
    (("--rate", "5/s", "--burst", "0"), "0 is not in the range"),
    (("--quota", "1000/week"), "write a quota as 5000000/month or 100000/day"),
    (("--quota", "10/day", "--warn-at", "0%"), "write a share as 80%"),
    (("--quota", "10/day", "--warn-at", "0.8"), "write a share as 80%"),
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(((*command, *options), said) for command in (ISSUE, CHANGE) for options, said in MALFORMED),
        ((*ISSUE, "--burst", "5"), "--burst needs --rate"),
        ((*ISSUE, "--warn-at", "80%"), "--warn-at needs --quota"),
        (CHANGE, "no change requested"),
        ((*CHANGE, "--no-rate", "--rate", "5/s"), "--no-rate contradicts the other options"),
        ((*CHANGE, "--no-rate", "--burst", "5"), "--no-rate contradicts the other options"),
        ((*CHANGE, "--no-quota", "--warn-at", "5%"), "--no-quota contradicts the other options"),
        ((*CHANGE, "--all-areas", "--areas", "forecast"), "--all-areas contradicts"),
        ((*ISSUE, "--expires", "2020-01-01"), "'2020-01-01' is in the past"),
        ((*ISSUE, "--expires", "soon"), "'soon' is not a time; give 90d, 12h or 2027-01-31"),
        (("issue", "--partner", " "), "--partner is empty"),
        (("issue", "--partner", "a\x1b[2J"), "--partner must be printable"),
        ((*ISSUE, "--label", "x" * 201), "--label must be printable and at most 200 characters"),
        (("rotate", UNKNOWN), "Missing option '--overlap'"),
        (("rotate", UNKNOWN, "--overlap", "soon"), "is not a duration"),
        (("extend", UNKNOWN), "Missing option '--expires'"),
        (("extend", UNKNOWN, "--expires", "2020-01-01"), "is in the past"),
        (("list", "--limit", "0"), "is not in the range"),
        (("list", "--expires-within", "soon"), "is not a duration"),
        (("list", "--area", "nonsense"), "area 'nonsense' does not exist; the areas are forecast, projects"),
    ],
)
def test_wrong_usage_is_reported_before_the_store_is_called(cli: Cli, words: tuple[str, ...], said: str) -> None:
    done = cli("keys", *words, "--json")
    assert done.code == 2
    assert said in done.err
    assert said in done.json["error"]["message"]
    assert not cli.data.exists()


def test_what_builds_on_a_limit_that_the_key_lacks_is_refused(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    for option, lack in ((("--burst", "5"), "no rate"), (("--warn-at", "50%"), "no quota")):
        done = cli("keys", "change", key_id, *option)
        assert done.code == 1
        assert lack in done.error()
    assert len(cli("log", key_id, "--json").json) == 1


def test_a_plan_is_set_given_listed_and_removed(cli: Cli, running: list[int]) -> None:
    assert cli("plans", "list").out == "No plans.\n"
    done = cli("plans", "set", "basic", "--rate", "50/s", "--quota", "1000/day", "--areas", "forecast")
    assert (done.code, done.out.startswith("Plan basic: forecast; 50/s")) == (0, True)
    for wrong in ("a b", "", "x" * 65, "ä"):
        assert cli("plans", "set", wrong).code == 2
    key_id = issue(cli, "acme", "--plan", "basic")["key_id"]
    assert "no plan other" in cli("keys", "issue", "--partner", "acme", "--plan", "other").error()
    assert cli("plans", "set", "pro", "--json").json["terms"] == {}
    assert [(plan["name"], plan["keys"]) for plan in cli("plans", "list", "--json").json] == [("basic", 1), ("pro", 0)]
    assert "1 key uses plan basic" in cli("plans", "remove", "basic").error()
    assert cli("keys", "change", key_id, "--plan", "pro", "--no-plan").code == 2
    assert f"Key {key_id} of acme: plan basic → plan pro" in cli("keys", "change", key_id, "--plan", "pro").out
    assert ids(cli, "--plan", "pro") == [key_id]
    assert cli("keys", "show", key_id, "--json").json["plan"] == "pro"
    assert cli("plans", "show", "pro", "--json").json["keys"] == 1
    assert cli("plans", "remove", "basic").out == "Removed plan basic.\n"
    assert cli("plans", "show", "basic").error() == "no plan basic; `forecast plans list` shows those there are"
    assert cli("keys", "change", key_id, "--no-plan").code == 0
    log = " ".join(cli("log").out.split())
    for words in ("plan-set", "plan-removed", "terms plan basic → plan pro"):
        assert words in log


def test_limits_of_a_partner_are_set_and_listed(cli: Cli, running: list[int]) -> None:
    assert cli("partners", "list").out == "No partners.\n"
    done = cli("partners", "set", "acme [b]", "--rate", "100/s", "--contact", "data@acme.example")
    assert done.out == "All keys of acme [b]: 100/s (burst 100)\n"
    issue(cli, "acme [b]")
    assert [(one["name"], one["keys"]) for one in cli("partners", "list", "--json").json] == [("acme [b]", 1)]
    assert "data@acme.example" in cli("partners", "show", "acme [b]").out
    assert "no limits of partner other" in cli("partners", "show", "other").error()
    assert cli("partners", "set", " ").code == 2
    assert "partner-set" in cli("log").out

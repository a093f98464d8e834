"""`forecast status`: the verdict first, on one screen, with an exit code that a script can branch on."""

from typing import Any

import msgspec
import pytest
from rich.console import Console

from service.cli.status.screen import screen
from service.operators.overview import Level, NextStep, Overview, Reason, Release, Verdict
from tests.service.cli.conftest import HERE, Start
from tests.service.conftest import Cli
from tests.support.listener import listening
from tests.support.overviews import BEFORE, NOW, RELEASE, hits, overview, worker

CACHE_AWAY = Reason(
    "The shared cache is unreachable. DuckDB answers instead; nothing is lost.",
    NOW - 180,
    next=NextStep("docs/operate/alerts-stores.html#forecastcacheaway", "docker compose ps -a cache"),
)
ONE_SERVES = Reason("1 of 2 workers serve.", NOW - 2)


def verdict(level: Level, *reasons: Reason) -> Verdict:
    sentence = f"{level.capitalize()}: {reasons[0].text}" if reasons else "All is well."
    return Verdict(level, sentence, NOW - 180, reasons)


def degraded(**over: Any) -> Overview:
    return overview(verdict=verdict("degraded", CACHE_AWAY, ONE_SERVES), **over)


@pytest.mark.parametrize("width", [80, 60])
def test_its_tables_fit_a_terminal_and_the_verdict_ends_it(width: int) -> None:
    """On 24 lines with the prompt, the labels are whole, and the verdict is above the prompt."""
    console = Console(width=width)
    slow = msgspec.structs.replace(overview().traffic_now, requests=98_765.4, p99=0.000_221, p999=12.3)
    for seen in (overview(), degraded(traffic_now=slow, hit_rate_now=hits(35.0, 1, 1, 1, previous=120))):
        lines = [
            "".join(segment.text for segment in line).rstrip()
            for line in console.render_lines(screen(seen, "http://127.0.0.1:8001"))
        ]
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)
        labels = [line[:12].strip() for line in lines]
        for label in ("hit rate", "near", "shared", "warehouse", "not found"):
            assert label in labels
        assert lines[0] in lines[10:]
        if seen.verdict.level == "ok" and width == 80:
            assert len(lines) <= 22
        if seen.verdict.level != "ok":
            assert lines[-1].strip().startswith("- 1 of 2 workers serve. (since ")


def test_it_says_the_essentials(cli: Cli, start: Start) -> None:
    start(overview())
    done = cli("status")
    assert (done.code, done.err) == (0, "")
    first, *rest = done.out.splitlines()
    assert first == "All is well. (since 12:13:20 UTC, 2 hours)"
    said = "\n".join(rest)
    for part in (
        "3f9c20d1 on web-1, version 0.1.0, up 2 hours, 40 connections",
        f"{RELEASE}, published 2 hours ago",
        f"from {BEFORE}: hit rate 98.12% before, 97.95% after",
        "1 min     1 h",
        "99.00%  95.00%",
        "200 731/s  304 40.6/s  404 40.6/s",
        "2 serving (4712, 4713), 360.0 MB; slowest: 4713, p99 1.2 ms",
        "revocations pushed to 2 of 2",
        "124.0 MB of 512.0 MB, 0 evicted",
        "0 look-ups waiting, 3.1/s, p50 2.1 ms, p99 9.3 ms",
        "80.0 GB of 100.0 GB free",
    ):
        assert part in said


def test_it_says_what_is_not_usual(cli: Cli, start: Start) -> None:
    """Answers of the previous release, and files in the inbox that cannot be a drop."""
    inbox = msgspec.structs.replace(overview().inbox, watched=True, ignored=2)
    start(overview(inbox=inbox, hit_rate_now=hits(60.0, 1, 1, 1, previous=120)))
    done = cli("status").out
    assert "waiting, 2 that cannot be a drop" in done
    assert "  previous" in done


@pytest.mark.parametrize(
    ("releases", "said"),
    [
        (((BEFORE, True), (RELEASE, False)), f"{BEFORE}, published 2 hours ago"),
        (((RELEASE, True), (BEFORE, False)), f"{RELEASE}, published 2 hours ago; before: {BEFORE}"),
        (((RELEASE, False), (BEFORE, False)), f"workers differ: {BEFORE}, {RELEASE}"),
        ((), "none: nothing has been published yet"),
    ],
    ids=["rolled back", "newest", "in a switch", "none"],
)
def test_the_release_is_the_current_one_and_the_one_before_is_older(
    cli: Cli, start: Start, releases: tuple[tuple[str, bool], ...], said: str
) -> None:
    found = tuple(Release(id=name, published_at=NOW - 7200, current=current) for name, current in releases)
    workers = (worker(1), worker(2, release=BEFORE))
    start(overview(releases=found, switch=None, workers=workers))
    lines = cli("status").out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("release "))
    end = next((n for n in range(begin, len(lines)) if lines[n] == ""), begin)
    assert " ".join(" ".join(lines[begin:end]).split()) == f"release {said}"


@pytest.mark.parametrize(("level", "code"), [("ok", 0), ("degraded", 4), ("unavailable", 5)])
def test_the_exit_code_is_the_verdict_and_its_reasons_come_first(
    cli: Cli, start: Start, level: Level, code: int
) -> None:
    start(overview(verdict=verdict(level, *([] if level == "ok" else [CACHE_AWAY, ONE_SERVES]))))
    done, as_json = cli("status"), cli("status", "--json")
    assert (done.code, as_json.code, as_json.json["level"]) == (code, code, level)
    if level != "ok":
        said = " ".join(done.out.split())
        assert said.startswith(
            f"{level.capitalize()}: {CACHE_AWAY.text} (since 14:10:20 UTC, 3 minutes) "
            "- 1 of 2 workers serve. (since 14:13:18 UTC, 2 seconds)"
        )
        assert "begin with: docker compose ps -a cache http://" in said
        assert "/docs/operate/alerts-stores.html#forecastcacheaway - 1 of 2 workers" in said


def test_json_has_the_whole_overview_which_the_token_of_the_settings_reads(cli: Cli, start: Start) -> None:
    listener = start(overview())
    said = cli("status", "--json", operator_read_token="read-token-of-the-tests").json
    (one,) = said["instances"]
    assert said["sentence"] == "All is well."
    assert (one["url"], one["error"]) == (listener.url, None)
    assert one["overview"]["hit_rate_now"]["rate"] == 0.99
    assert listener.asked[-1].token == "Bearer read-token-of-the-tests"


def test_no_instance_is_one_line_and_its_own_code(cli: Cli) -> None:
    for more in ((), ("--json",)):
        done = cli("status", *more)
        assert done.code == 1
        assert done.error().startswith(f"no instance runs on {cli.data}: start one with `forecast serve`")


def test_an_instance_that_cannot_be_asked_is_named(cli: Cli, start: Start) -> None:
    listener = start(overview())
    listener.refuse(401, "missing_token")
    done = cli("status")
    assert done.code == 1
    assert done.error().startswith(f"instance 4711 on {HERE} is unreachable: ")
    assert "FORECAST_OPERATOR_READ_TOKEN" in done.err
    said = cli("status", "--json")
    assert (said.code, said.json["level"], said.json["instances"][0]["overview"]) == (1, None, None)


def test_an_instance_on_the_loopback_of_another_host_is_not_asked(cli: Cli, start: Start) -> None:
    """The token would go to another process on that port here."""
    listener = start(overview(), host=f"not-{HERE}")
    done = cli("status")
    assert done.code == 1
    assert f"of not-{HERE}: set FORECAST_ADVERTISE_URL there" in done.error()
    assert listener.asked == []


def test_a_url_asks_that_listener_and_no_other(cli: Cli, start: Start) -> None:
    here = start(degraded())
    with listening() as there:
        there.answer("/overview", overview())
        assert cli("status", "--url", f"{there.url}/").code == 0
    assert here.asked == []


def test_a_url_that_is_none_is_wrong_usage(cli: Cli) -> None:
    for url in ("127.0.0.1:8001", "ftp://a", "http://", "http://a:b@c:1", "http://a:99999", "http://a?b"):
        done = cli("status", "--url", url)
        assert done.code == 2
        assert "http://127.0.0.1:8001" in done.err


def test_several_instances_get_a_line_each(cli: Cli, start: Start) -> None:
    listeners = [start(overview(), pid=4711), start(overview(), pid=4811)]
    done = cli("status")
    assert done.code == 0
    assert done.out.startswith("All is well with 2 instances.\n")
    for listener in listeners:
        assert listener.url in done.out
    assert f"Release {RELEASE}." in done.out


@pytest.mark.parametrize(
    ("levels", "code", "says"),
    [
        (("ok", "unavailable"), 4, "2 instances: 1 unavailable."),
        (("degraded", "ok"), 4, "2 instances: 1 degraded."),
        (("unavailable", "unavailable"), 5, "2 instances: 2 unavailable."),
        (("ok", None), 4, "2 instances: 1 unreachable."),
        (("unavailable", None), 5, "2 instances: 1 unavailable, 1 unreachable."),
        ((None, None), 1, "None of 2 instances is reachable."),
    ],
)
def test_together_they_serve_as_long_as_one_of_them_does(
    cli: Cli, start: Start, levels: tuple[Level | None, ...], code: int, says: str
) -> None:
    for number, level in enumerate(levels):
        reasons = [] if level == "ok" else [CACHE_AWAY]
        listener = start(overview(verdict=verdict(level or "ok", *reasons)), pid=4711 + number)
        if level is None:
            listener.refuse(503, "unavailable")
    done = cli("status")
    assert (done.code, done.out.splitlines()[0]) == (code, says)
    assert cli("status", "--json").json["sentence"] == says


def test_different_releases_are_reported(cli: Cli, start: Start) -> None:
    elsewhere = msgspec.structs.replace(overview().instance, id="77aa0012")
    start(overview(), pid=4711)
    there = (Release(id=BEFORE, published_at=NOW - 31 * 86_400, current=True),)
    start(overview(instance=elsewhere, releases=there), pid=4811)
    assert f"Releases differ: 3f9c20d1 has {RELEASE}, 77aa0012 has {BEFORE}." in " ".join(cli("status").out.split())

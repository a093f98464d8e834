"""The heaviest of many names in little memory."""

import random

import pytest

from service.base.ipc import PartnerSample, Sample
from service.operators.ranking import NAMES, SHOWN, WINDOW_SECONDS, RankingBoard, SpaceSaving, as_sent


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_no_count_is_too_low_and_each_says_by_how_much_it_may_be_too_high() -> None:
    """Whatever the order; the bound is that of the paper: the sum of all counts, divided by the names kept."""
    names = [f"n{number}" for number in range(200) for _ in range(1 + 2000 // (1 + number))]
    random.Random(4).shuffle(names)
    sketch = SpaceSaving(50)
    for name in names:
        sketch.add((name, ""), 1)
    assert len(sketch.counts) == 50
    for (name, _), (count, error) in sketch.counts.items():
        assert names.count(name) <= count
        assert count - error <= names.count(name)
        assert error <= len(names) / 50
    assert {(f"n{number}", "") for number in range(10)} <= set(sketch.counts)


def test_a_name_that_comes_late_is_ranked_although_the_board_is_full() -> None:
    board = RankingBoard(Clock())
    board.add(Sample("query", f"q{number}", "", 1) for number in range(NAMES))
    board.add([Sample("query", "late", "", 1)] * 10)
    first = board.rankings().queries[0]
    assert (first.name, first.count - first.error) == ("late", 10)
    assert len(board.rankings().queries) == SHOWN


def test_what_may_be_mostly_error_is_not_shown() -> None:
    board = RankingBoard(Clock())
    board.add([Sample("unknown", "asked", "", 50)])
    board.add(Sample("unknown", f"made up {number}", "", 1) for number in range(20 * NAMES))
    assert [one.name for one in board.rankings().unknown] == ["asked"]


def test_keys_are_ranked_with_their_partners() -> None:
    board = RankingBoard(Clock())
    board.add([Sample("key", "k1", "acme", 5), Sample("key", "k2", "acme", 4), Sample("key", "k3", "bell", 8)])
    ranked = board.rankings()
    assert [(one.name, one.detail, one.count) for one in ranked.keys] == [
        ("k3", "bell", 8),
        ("k1", "acme", 5),
        ("k2", "acme", 4),
    ]


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    clock = Clock()
    board = RankingBoard(clock)
    board.add([Sample("missed", "old", "", 3)])
    clock.now = WINDOW_SECONDS + 1
    board.add([Sample("missed", "new", "", 1)])
    assert [one.name for one in board.rankings().missed] == ["old", "new"]
    assert board.rankings().seconds == WINDOW_SECONDS + 1
    clock.now = 2 * WINDOW_SECONDS + 2
    assert [one.name for one in board.rankings().missed] == ["new"]
    clock.now += 10 * WINDOW_SECONDS
    assert board.rankings().missed == ()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("forecast zip:90210", "forecast zip_code=90210"),
        ("forecast city:MO:stlouis", "forecast city_name=stlouis&state_code=MO"),
        ("forecast zip:10001+city:NY:newyork", "forecast zip_code=10001&city_name=newyork&state_code=NY"),
        ("projects zip:90210\n100\n\n0a1b2c3d4e5f6071", "projects zip_code=90210"),
        (
            'projects city:NY:x{"status":"planned","project_type":"a b"}\n1\nid\nff',
            "projects city_name=x&state_code=NY&status=planned&project_type=a b",
        ),
        ("forecast zip_code=00000", "forecast zip_code=00000"),
        ("192.0.2.1", "192.0.2.1"),
        ("batch", "batch"),
        ('projects zip:90210{"stat…', "projects zip_code=90210"),
    ],
)
def test_queries_are_shown_as_partners_send_them(name: str, shown: str) -> None:
    assert as_sent(name) == shown


def test_the_pages_of_one_list_are_ranked_as_one_query() -> None:
    board = RankingBoard(Clock())
    board.add(Sample("query", f"projects zip:90210\n100\nid{number}\nff", "", 2) for number in range(5))
    (only,) = board.rankings().queries
    assert (only.name, only.count) == ("projects zip_code=90210", 10)


def seen(partner: str, *, quota: float | None = None, error: str = "", **statuses: int) -> PartnerSample:
    sample = PartnerSample(partner, {int(status[1:]): count for status, count in statuses.items()}, quota=quota)
    sample.cached, sample.answers, sample.last_error = 3, 4, error
    sample.seconds.counts[5] = sum(statuses.values())
    return sample


def test_the_figures_of_a_partner_are_the_sum_over_workers_and_the_newest_error() -> None:
    clock = Clock()
    board = RankingBoard(clock)
    board.add([], [seen("acme", s200=6, quota=0.5, error="2026-11-20T02:00:00 404 no"), seen("bolt", s200=90)])
    clock.now += 60
    board.add(
        [], [seen("acme", s200=1, s429=3, quota=0.6, error="2026-11-20T03:00:00 429 limit"), seen("acme", s200=2)]
    )
    bolt, acme = board.partners()
    assert (bolt.name, bolt.requests, bolt.quota_used, bolt.last_error) == ("bolt", 90, None, "")
    assert (acme.requests, acme.statuses, acme.hit_rate) == (12, {"200": 9, "429": 3}, 0.75)
    assert (acme.quota_used, acme.last_error) == (0.6, "2026-11-20T03:00:00 429 limit")
    assert acme.p50 is not None
    assert 0.1 < acme.per_second < 0.2, "6 requests a minute ago, and 6 now"
    clock.now += 600
    assert board.partners()[1].per_second < 0.001
    clock.now += 2 * WINDOW_SECONDS
    assert board.partners() == ()
    assert board.totals(1) == [("bolt", {200: 90})], "metrics only ever grow"


def test_the_partners_of_before_a_restart_are_kept() -> None:
    board, again = RankingBoard(Clock()), RankingBoard(Clock())
    board.add([], [seen("acme", s200=6)])
    again.restore(board.keep(), 0.0)
    assert again.partners()[0].requests == 6
    assert again.totals(50) == []

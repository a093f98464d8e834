"""StoreClock: the key store's time of day, whatever this machine's clock says."""

import time

import pytest

from service.base.store_clock import StoreClock

HOUR = 3600.0


def test_it_is_the_machine_s_time_until_the_store_has_said_something() -> None:
    clock = StoreClock()
    before = time.time()
    assert before <= clock() <= time.time()
    assert clock.ahead is None


def test_it_is_the_store_s_time_from_then_on() -> None:
    clock = StoreClock()
    now = time.monotonic()
    assert clock.update(time.time() - HOUR, now, now)
    assert clock.ahead == pytest.approx(HOUR, abs=1)
    assert clock() == pytest.approx(time.time() - HOUR, abs=1)
    other = StoreClock()
    other.update(1000.0, now - 4, now)
    assert other.base == 1000.0 - (now - 2)


def test_setting_the_machine_s_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StoreClock()
    now = time.monotonic()
    clock.update(time.time(), now, now)
    before, real = clock(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + HOUR)
    assert clock() == pytest.approx(before, abs=10)
    assert clock.ahead == pytest.approx(HOUR, abs=10)


@pytest.mark.parametrize(("said", "took", "is_news"), [(1000.0, 0.0, False), (1001.5, 3.0, False), (1001.7, 3.0, True)])
def test_what_the_way_there_and_back_explains_is_no_news(said: float, took: float, *, is_news: bool) -> None:
    clock = StoreClock()
    clock.update(1000.0, 50.0, 50.0)
    assert clock.update(said, 50.0 - took / 2, 50.0 + took / 2) is is_news
    assert clock.base == (said if is_news else 1000.0) - 50.0

"""A bounded memory: what is used stays, what is not is forgotten."""

from service.quota.rates import Recent


def test_what_is_used_stays_while_others_come_and_go() -> None:
    recent: Recent[int] = Recent(100, 60)
    recent.put("used", 1, 0)
    for number in range(5000):
        recent.put(str(number), number, 0)
        assert recent.find("used", 0) == 1
        assert len(recent) <= 100
    assert recent.find("0", 0) is None


def test_what_is_idle_is_forgotten_in_time() -> None:
    recent: Recent[int] = Recent(100, 60)
    recent.put("idle", 1, 0)
    recent.put("b", 2, 59)
    assert recent.find("idle", 59) == 1
    recent.put("c", 3, 61)
    recent.put("d", 4, 122)
    assert recent.find("idle", 122) is None
    assert recent.find("c", 122) == 3


def test_a_value_found_again_is_young_again() -> None:
    recent: Recent[int] = Recent(100, 60)
    recent.put("a", 1, 0)
    for now in range(50, 1000, 50):
        assert recent.find("a", now) == 1
        recent.put(str(now), now, now)

"""What a hit in the shared cache costs where that is a cluster, beside one server.

``python -m tests.figures.cluster_hits``: two instances with one worker each and no near cache, which wrk asks in turns.
It asks for ZIP codes at random that all are in the cache. A line for each round: answers a second, and microseconds of
the worker's processor for each, in its own code and in the kernel's.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.figures.common import Site, say, site
from tests.support.cluster import Cluster
from tests.support.drops import location, write_drop
from tests.support.instance import FORECAST, Instance, forecast_here, issue_key, serving
from tests.support.sentinels import PortServer
from tests.support.waiting import until

_ROUNDS = 7
_SECONDS = 5
_CONNECTIONS = 32
_FIRST, _LAST = 36_000, 36_999
_SCRIPT = """
request = function()
  return wrk.format("GET", "%s?zip_code=" .. math.random(%d, %d), {["x-api-key"] = "%s"})
end
done = function(summary) io.write("answers ", summary.requests, " ", summary.errors.status, "\\n") end
"""


class Cost(NamedTuple):
    """Of one answer."""

    rate: float  # answers a second
    user: float  # microseconds
    system: float


def main() -> None:
    with site() as made, ExitStack() as stack:
        single = PortServer(made.folder / "single").start()
        stack.callback(single.kill)
        cluster = Cluster(made.folder / "cluster")
        stack.callback(cluster.kill)
        cluster.start()
        rows = [location(str(number), "Dickinson", "AL") for number in range(_FIRST, _LAST + 1)]
        drop = write_drop(made.folder / "more", locations=rows)
        done = forecast_here(made.env, "extracts", "publish", str(drop))
        assert done.returncode == 0, done.stderr
        script = made.folder / "random.lua"
        script.write_text(_SCRIPT % (FORECAST, _FIRST, _LAST, issue_key(made.env)))
        instances = {
            name: stack.enter_context(_warm(made, name, url))
            for name, url in (("one server", single.url), ("cluster", cluster.url))
        }
        _compare(instances, script)


@contextmanager
def _warm(made: Site, name: str, url: str) -> Iterator[Instance]:
    env = {**made.env, "FORECAST_CACHE_URL": url, "FORECAST_NEAR_CACHE_BYTES": "0"}
    done = forecast_here(env, "cache", "warm")
    assert done.returncode == 0, done.stderr
    with serving(env, made.folder / f"{name}.log") as instance:
        until(lambda: instance.ready().json()["status"] == "ready")
        yield instance


def _compare(instances: dict[str, Instance], script: Path) -> None:
    seen: dict[str, list[Cost]] = {name: [] for name in instances}
    for number in range(_ROUNDS + 1):
        for name, instance in instances.items():
            cost = _measured(instance, script)
            if number:  # the first warms up
                seen[name].append(cost)
                say(f"{name:10}  {cost.rate:7,.0f}/s  {cost.user:5.1f} µs user  {cost.system:5.1f} µs system")
    for name, costs in seen.items():
        user, system = median(cost.user for cost in costs), median(cost.system for cost in costs)
        say(f"{name}: median {median(cost.rate for cost in costs):,.0f}/s, {user:.1f} µs user, {system:.1f} µs system")


def _measured(instance: Instance, script: Path) -> Cost:
    (worker,) = instance.worker_pids()
    missed = instance.total("forecast_answers_total", tier="warehouse")
    before = _times(worker)
    command = ["wrk", "-t1", f"-c{_CONNECTIONS}", f"-d{_SECONDS}s", "-s", str(script), instance.partners]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = _times(worker)
    answers, errors = next(
        (int(words[1]), int(words[2]))
        for line in said.splitlines()
        if (words := line.split()) and words[0] == "answers"
    )
    missed = instance.total("forecast_answers_total", tier="warehouse") - missed
    assert errors == 0, said
    if missed > answers / 100:
        say(f"{missed:,.0f} of {answers:,} answers were no hits")
    user, system = ((late - early) / answers * 1e6 for early, late in zip(before, after, strict=True))
    return Cost(answers / _SECONDS, user, system)


def _times(pid: int) -> tuple[float, float]:
    """Seconds of processor time: user, system."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(words[11]) / ticks, int(words[12]) / ticks


if __name__ == "__main__":
    main()

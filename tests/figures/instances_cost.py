"""What a request costs on several instances that share both Redis and a data folder.

``python -m tests.figures.instances_cost [INSTANCES [ROUNDS [SECONDS]]]`` (3, 12 and 3 by default: three minutes): one
instance with one worker, so many that share nothing, and for each number from two on as many that share all. All of
them run all the time. Each round asks each of these in turn, in another order each time: wrk asks each of its
instances for some 4,500 answers a second, of a key with a rate and a quota, all of which are near. Counted is the time
of the processor, user and system, of all processes of the instances that were asked. A line for each: milliseconds for
1,000 answers, and how much more that is than for one instance of the same round: median, quartiles, and the standard
error of the mean. Those that share nothing show what a machine on which more is going on makes of the same work; what
is more with those that share is the price of sharing.
"""

import math
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, quantiles, stdev
from typing import NamedTuple

from tests.figures.common import Site, say, site
from tests.support.instance import FORECAST, SHORT_DRAIN, Instance, forecast_here, issue_key, serving
from tests.support.waiting import until

PER_SECOND = 5_000
CONNECTIONS = 10
# wrk waits so long before each request of a connection.
_DELAY_MILLISECONDS = CONNECTIONS * 1000 // PER_SECOND
_SCRIPT = """
wrk.headers["x-api-key"] = "%s"
delay = function() return %d end
done = function(summary) io.write("answers ", summary.requests, " ", summary.errors.status, "\\n") end
"""


class Cost(NamedTuple):
    """Milliseconds of processor for 1,000 answers."""

    instances: float
    redis: float


class Asked(NamedTuple):
    """Instances that are asked together, and what asks each of them."""

    instances: list[Instance]
    scripts: list[Path]
    servers: list[int]  # process ids


def main(number: str = "3", rounds: str = "12", seconds: str = "3") -> None:
    most = int(number)
    with ExitStack() as stack:
        ways = {"one": _started(stack, [_Ground.within(stack)])}
        ways["strangers"] = _started(stack, [_Ground.within(stack) for _ in range(most)])
        ways |= {f"{count} sharing": _started(stack, [_Ground.within(stack)] * count) for count in range(2, most + 1)}
        for way in ways.values():
            _ask(way, 1)  # fills what is near, and leases
        seen: dict[str, list[Cost]] = {name: [] for name in ways}
        for turn in range(int(rounds)):
            names = list(ways)
            for name in (*names[turn % len(names) :], *names[: turn % len(names)]):
                seen[name].append(_measured(ways[name], float(seconds)))
    for name, costs in seen.items():
        each, redis = mean(cost.instances for cost in costs), mean(cost.redis for cost in costs)
        more = [(cost.instances / one.instances - 1) * 100 for cost, one in zip(costs, seen["one"], strict=True)]
        low, middle, high = quantiles(more, n=4)
        error = stdev(more) / math.sqrt(len(more))
        reported = f"{middle:+.1f} % (quartiles {low:+.1f} and {high:+.1f}, mean {mean(more):+.1f} ± {error:.1f})"
        say(f"{name}: {each:.2f} ms for 1,000 answers, and {redis:.2f} of Redis; {reported}")


class _Ground(NamedTuple):
    """What instances share, and what wrk asks them."""

    site: Site
    env: dict[str, str]
    script: Path

    @classmethod
    def within(cls, stack: ExitStack) -> "_Ground":
        made = stack.enter_context(site())
        key = issue_key(made.env)
        terms = ("--rate", "100000/s", "--quota", "1000000000/month")
        done = forecast_here(made.env, "keys", "change", key.split("_")[2], *terms)
        assert done.returncode == 0, done.stderr
        script = made.folder / "load.lua"
        script.write_text(_SCRIPT % (key, _DELAY_MILLISECONDS))
        return cls(made, made.env | {"FORECAST_DRAIN": str(SHORT_DRAIN)}, script)


def _started(stack: ExitStack, grounds: list[_Ground]) -> Asked:
    """An instance on each of `grounds`, which may be one and the same."""
    logs = [ground.site.folder / f"serve-{at}.log" for at, ground in enumerate(grounds)]
    instances = [stack.enter_context(serving(ground.env, log)) for ground, log in zip(grounds, logs, strict=True)]
    scripts = [ground.script for ground in grounds]
    peers = len(grounds) // len(set(scripts))
    until(lambda: all(one.metric("forecast_all_workers") == peers for one in instances))
    servers = sorted({server.pid for ground in grounds for server in (ground.site.keys, ground.site.cache)})
    return Asked(instances, scripts, servers)


def _measured(way: Asked, seconds: float) -> Cost:
    pids = [pid for one in way.instances for pid in (one.process.pid, *one.descendants())]
    before = _busy(pids), _busy(way.servers)
    answers = _ask(way, seconds)
    after = _busy(pids), _busy(way.servers)
    busy, redis = (late - early for early, late in zip(before, after, strict=True))
    return Cost(busy / answers * 1e6, redis / answers * 1e6)


def _ask(way: Asked, seconds: float) -> int:
    """How many were answered."""
    load = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "-s"]
    asking = [
        subprocess.Popen(
            [*load, str(script), f"{one.partners}{FORECAST}?zip_code=36436"], stdout=subprocess.PIPE, text=True
        )
        for one, script in zip(way.instances, way.scripts, strict=True)
    ]
    answers = 0
    for one in asking:
        said, _ = one.communicate()
        (counted,) = [line.split() for line in said.splitlines() if line.startswith("answers ")]
        assert counted[2] == "0", said
        answers += int(counted[1])
    return answers


def _busy(pids: list[int]) -> float:
    """Seconds of processor time that they took; finer than the ticks of /proc/PID/stat."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(map(_ran, tasks)) / 1e9


def _ran(task: Path) -> int:
    """Nanoseconds. None of a thread that has ended since it was listed: it had next to nothing to do."""
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


if __name__ == "__main__":
    main(*sys.argv[1:4])

"""What a request costs on several instances that share both Redis and a data folder.

``python -m tests.figures.instances_cost [INSTANCES [SECONDS]]`` (3 and 3 by default, which take less than a minute):
one instance with one worker, so many that share nothing, and as many that share all, each twice. wrk asks each instance
for some 4,500 answers a second, of a key with a rate and a quota, all of which are near. A line for each: milliseconds
of processor for 1,000 answers, of all processes of the instances and of all Redis. Those that share nothing show what
a machine on which more is going on makes of the same work; what is more with those that share is the price of sharing.
"""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
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


def main(number: str = "3", seconds: str = "3") -> None:
    with ExitStack() as stack:
        grounds = [_Ground.within(stack) for _ in range(int(number))]
        together, strangers = grounds[:1] * len(grounds), grounds
        ways = {"one": grounds[:1], "strangers": strangers, "sharing": together}
        seen: dict[str, list[Cost]] = {name: [] for name in ways}
        for name in (*ways, *reversed(ways)):
            seen[name].append(_measured(name, ways[name], float(seconds)))
        one = mean(cost.instances for cost in seen["one"])
        for name, costs in seen.items():
            each, redis = mean(cost.instances for cost in costs), mean(cost.redis for cost in costs)
            say(f"{name}: {each:.2f} ms for 1,000 ({(each / one - 1) * 100:+.1f} %), and {redis:.2f} of Redis")


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


def _measured(name: str, grounds: list[_Ground], seconds: float) -> Cost:
    """Of an instance on each of `grounds`, which may be one and the same."""
    with ExitStack() as stack:
        logs = [ground.site.folder / f"serve-{at}.log" for at, ground in enumerate(grounds)]
        instances = [stack.enter_context(serving(ground.env, log)) for ground, log in zip(grounds, logs, strict=True)]
        scripts = [ground.script for ground in grounds]
        peers = len(grounds) // len(set(scripts))
        until(lambda: all(one.metric("forecast_all_workers") == peers for one in instances))
        _ask(instances, scripts, 1)  # fills what is near, and leases
        pids = [pid for one in instances for pid in (one.process.pid, *one.descendants())]
        servers = sorted({server.pid for ground in grounds for server in (ground.site.keys, ground.site.cache)})
        before = _busy(pids), _busy(servers)
        answers = _ask(instances, scripts, seconds)
        after = _busy(pids), _busy(servers)
    busy, redis = (late - early for early, late in zip(before, after, strict=True))
    cost = Cost(busy / answers * 1e6, redis / answers * 1e6)
    told = f"{cost.instances:.2f} ms for 1,000 answers; Redis {cost.redis:.2f}"
    say(f"{len(grounds)} {name}: {answers / seconds:,.0f}/s, {told}")
    return cost


def _ask(instances: list[Instance], scripts: list[Path], seconds: float) -> int:
    """How many were answered."""
    load = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "-s"]
    asking = [
        subprocess.Popen(
            [*load, str(script), f"{one.partners}{FORECAST}?zip_code=36436"], stdout=subprocess.PIPE, text=True
        )
        for one, script in zip(instances, scripts, strict=True)
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
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    main(*sys.argv[1:2])

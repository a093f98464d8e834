"""Two versions of the service side by side, under load: nothing fails, nothing is wrong, and usage adds up.

``python -m tests.figures.two_versions [COMMIT [bucket]]``: an instance of this tree and one of an earlier commit
(without COMMIT, the last one that is twelve hours older), on the same two Redis and one data folder; with `bucket`, on
data folders of their own and a bucket (the commit must know FORECAST_RELEASES_URL). 200 requests a second go to each,
while commands of both versions publish, roll back, issue keys, revoke them and empty caches. In the end the older
instance is stopped, as in a rolling upgrade, and then the newer one.

Told and judged: requests that failed, answers that differ from what their release says, requests with a revoked key
that passed after the command had returned, the rate of a key that both serve, and whether what was answered is stored.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import uvloop

from service.quota.report import DamagedUsage, UsageReport
from tests.figures.common import Site, say
from tests.figures.versions_load import Asked, Load, statuses, wrong
from tests.support.drops import HOUSING, LOCATIONS, people, project, write_drop
from tests.support.instance import Instance, environment, forecast, serving
from tests.support.s3_server import CREDENTIALS, s3_server
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until

PER_SECOND = 200.0
RATE, BURST = 50, 50
# Of the rate's key, at each instance.
OFFERED = 60.0
_HERE = Path(__file__).parents[2]
_TOKEN = "write-token-of-the-figures"
_OLDER_SECONDS = 12 * 3600
# Between two commands.
_PAUSE_SECONDS = 1.0
# From SIGTERM until a balancer sends nothing more; an instance gives it a second.
_LOOK_AWAY_SECONDS = 0.6


class Key(NamedTuple):
    key_id: str
    presented: str


class Version:
    """One version: its environment for instance and commands, and its instance once it runs."""

    def __init__(self, name: str, env: dict[str, str]) -> None:
        self.name = name
        self.env = env
        self.instance: Instance

    def command(self, *arguments: str) -> str:
        """Its standard output; the run ends if it fails."""
        done = forecast(self.env, *arguments)
        say(f"{self.name}: forecast {' '.join(arguments[:2])}: exit {done.returncode}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def run(self, *arguments: str) -> str:
        return await asyncio.to_thread(self.command, *arguments)

    async def issue(self, *terms: str) -> Key:
        said = json.loads(await self.run("keys", "issue", "--partner", "acme", "--json", *terms))
        return Key(said["key_id"], said["key"])


class Ground(NamedTuple):
    site: Site
    older: Version
    newer: Version
    figures: dict[str, int]  # of each release, in every answer

    def drop(self, figure: int) -> str:
        folder = self.site.folder / f"drop-{figure}"
        population = [people("36436", 2023, figure), people("90028", 2023, figure)]
        rows = {"locations": LOCATIONS, "population": population, "housing": HOUSING, "projects": [project("p1")]}
        return str(write_drop(folder, **rows))

    async def publish(self, version: Version, figure: int) -> None:
        self.figures[(await version.run("extracts", "publish", self.drop(figure))).strip()] = figure


def earlier() -> str:
    """The last commit that is so much older than the newest."""
    newest = int(_git("log", "-1", "--format=%ct"))
    commit = _git("rev-list", "-1", f"--before={newest - _OLDER_SECONDS}", "HEAD")
    assert commit, "no commit here is so much older: name one"
    return commit


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=_HERE, capture_output=True, text=True, check=True).stdout.strip()


@contextlib.contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pfv") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _of_tree(env: dict[str, str], tree: Path) -> dict[str, str]:
    """The environment in which processes import the service of `tree`, wherever they are started."""
    made = env | {"PYTHONPATH": os.pathsep.join([str(tree), env["PYTHONPATH"]]), "PYTHONSAFEPATH": "1"}
    found = subprocess.run(
        [sys.executable, "-c", "import service; print(service.__file__)"],
        env=made, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip().startswith(str(tree)), found.stdout
    return made


@contextlib.contextmanager
def ground(commit: str, *, bucket: bool) -> Iterator[Ground]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pff")))
        servers = [ValkeyProcess(folder / name, appendonly=True).start() for name in ("k", "c")]
        for server in servers:
            stack.callback(server.kill)
        settings = {"keys_url": servers[0].url, "cache_url": servers[1].url, "operator_write_token": _TOKEN}
        if bucket:
            s3 = stack.enter_context(s3_server())
            options = ",".join(f"{name}={value}" for name, value in s3.options.items())
            settings |= {"releases_url": s3.make_bucket("releases") + "/prefix", "releases_options": options}
        env = environment(folder / "data", **settings) | (CREDENTIALS if bucket else {})
        older = Version("older", _of_tree(env, stack.enter_context(tree_of(commit))))
        newer = Version("newer", _of_tree(env, _HERE))
        newer.command("keys", "issue", "--partner", "first")  # the pepper is made with it
        if bucket:
            pepper = (folder / "data" / "pepper").read_text().strip()
            older.env |= {"FORECAST_DATA_DIR": str(folder / "older"), "FORECAST_KEYS_PEPPER": pepper}
        made = Ground(Site(folder, env, servers[0], servers[1]), older, newer, {})
        uvloop.run(made.publish(older, 100_001))
        for version in (older, newer):
            version.instance = stack.enter_context(serving(version.env, folder / f"{version.name}.log", workers=2))
        until(lambda: all(one.instance.ready().status_code == 200 for one in (older, newer)))
        yield made


class Outcome(NamedTuple):
    asked: list[Asked]
    keys: dict[str, Key]  # by label
    revoked: dict[str, tuple[float, float]]  # when the command began, and when it had returned


async def drive(ground: Ground) -> Outcome:
    """All commands of both versions, one after the other, under load."""
    load, keys, revoked = Load(), dict[str, Key](), dict[str, tuple[float, float]]()
    older, newer = ground.older, ground.newer

    def begin(label: str, per_second: float) -> None:
        for one in (older, newer):
            load.begin(one.name, one.instance.partners, label, keys[label].presented, per_second)

    keys["open"] = await newer.issue()
    keys["rate"] = await older.issue("--rate", f"{RATE}/s", "--burst", str(BURST))
    begin("open", PER_SECOND)
    begin("rate", OFFERED)
    for number, (one, other) in enumerate(((older, newer), (newer, older))):
        label = f"of {one.name}"
        keys[label] = await one.issue()
        begin(label, 20)
        await ground.publish(one, 100_010 + number)
        await asyncio.sleep(_PAUSE_SECONDS)
        await other.run("extracts", "rollback")
        await asyncio.sleep(_PAUSE_SECONDS)
        await one.run("extracts", "rollback")
        await one.run("cache", "purge", "--yes")
        await asyncio.sleep(_PAUSE_SECONDS)
        began = time.monotonic()
        await other.run("keys", "revoke", keys[label].key_id)
        revoked[label] = began, time.monotonic()
        await asyncio.sleep(_PAUSE_SECONDS)
        await load.end(label=label)
    for version in (older, newer):
        stopping = asyncio.create_task(asyncio.to_thread(version.instance.stop))
        await asyncio.sleep(_LOOK_AWAY_SECONDS)
        await load.end(instance=version.name)
        say(f"{version.name}: stopped with exit code {await stopping}")
    return Outcome(load.asked, keys, revoked)


async def stored(site: Site, key_ids: list[str]) -> Counter[tuple[str, int]]:
    """Answers by key and status, of yesterday and today: a run may meet midnight."""
    found: Counter[tuple[str, int]] = Counter()
    today = datetime.now(UTC).date()
    async with site.store() as store:
        async for row in UsageReport(store.redis).of_keys(key_ids, today - timedelta(days=1), today):
            assert not isinstance(row, DamagedUsage), row
            found[row.key_id, 200] += row.answered + row.answered_empty + row.not_modified
            found[row.key_id, 404] += row.not_found
    return found


async def judge(ground: Ground, outcome: Outcome, seconds: float) -> bool:
    asked, keys = outcome.asked, outcome.keys
    say(f"{len(asked):,} requests in {seconds:.0f} s; by key: {statuses(asked)}")
    allowed = {"rate": {200, 404, 429}, "open": {200, 404}}
    failed = [one for one in asked if one.status not in allowed.get(one.key, {200, 404, 401})]
    early = [one for one in asked if one.status == 401 and one.sent < outcome.revoked[one.key][0]]
    ended = {label: returned for label, (_, returned) in outcome.revoked.items()}
    passed = [one for one in asked if one.status != 401 and one.sent > ended.get(one.key, one.sent)]
    differ = wrong(asked, ground.figures)
    accepted = sum(one.status in (200, 404) for one in asked if one.key == "rate")
    most = BURST + RATE * seconds * 1.05
    found = await stored(ground.site, [key.key_id for key in keys.values()])
    say(f"failed {len(failed)}, refused while good {len(early)}, wrong {len(differ)}")
    say(f"passed after their revocation {len(passed)}; of the rate {accepted:,}, at most {most:,.0f}")
    for one in [*failed, *early, *passed][:10]:
        say(f"  {one}")
    for line in differ[:10]:
        say(f"  {line}")
    unequal = 0
    for label, key in keys.items():
        used = {status: found[key.key_id, status] for status in (200, 404)}
        seen = {status: sum(one.status == status for one in asked if one.key == label) for status in used}
        unequal += seen != used
        say(f"  {label}: answered {seen}, stored {used}{'' if seen == used else '  WRONG'}")
    return not (failed or early or differ or passed or unequal or accepted > most)


def run(commit: str, *, bucket: bool) -> bool:
    say(f"this tree beside {_git('log', '-1', '--format=%h of %ci: %s', commit)}{', on a bucket' if bucket else ''}")
    with ground(commit, bucket=bucket) as made:

        async def all_of_it() -> bool:
            began = time.monotonic()
            outcome = await drive(made)
            return await judge(made, outcome, time.monotonic() - began)

        right = uvloop.run(all_of_it())
        for version in (made.older, made.newer):
            lines = {line["message"] for line in version.instance.log() if line.get("level") in ("warning", "error")}
            for line in sorted(lines):
                say(f"  {version.name} logged: {line}")
        return right


def main(commit: str = "", on: str = "") -> int:
    return 0 if run(commit or earlier(), bucket=on == "bucket") else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

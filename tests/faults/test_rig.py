"""The rig under load, parted as networks part: what is cut off is silent, without a notice.

On ports, where namespaces are not permitted, servers are stopped instead; a machine cannot be cut off from some others
then, which `test_failover.py` and `test_store_faults.py` show with proxies.
"""

import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3
import pytest

from config.server_lists import Node
from service.redis.cluster.slots import slot_of
from tests.support.instance import issue_key, serving
from tests.support.network import Namespace, Network, permitted
from tests.support.rig import Load, Rig, rig
from tests.support.s3_server import REGION
from tests.support.sentinels import PortServer, wait_until
from tests.support.waiting import until

pytestmark = pytest.mark.soak

_ROUNDS = 5
_CUT_OFF_SECONDS = 90.0
needs_namespaces = pytest.mark.skipif(not permitted(), reason="network namespaces are not permitted here")


@pytest.fixture(scope="module")
def standing() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="pf") as folder, rig(Path(folder)) as made:
        yield made


@pytest.fixture
def whole(standing: Rig) -> Iterator[Rig]:
    """As it should be, before and after."""
    standing.settle()
    yield standing
    standing.heal()
    standing.settle()


@contextmanager
def loads(site: Rig, *keys: str) -> Iterator[list[Load]]:
    """One for each instance and key, in this order, once each was answered."""
    with ExitStack() as stack:
        made = [stack.enter_context(Load(one, key)) for key in keys for one in site.instances]
        until(lambda: all(load.answers for load in made))
        yield made


def tell(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")


def until_stored(site: Rig, key: str, made: list[Load]) -> int:
    """Until the usage of `key` is what was answered; returns that."""
    answered = sum(load.statuses[200] for load in made)
    until(lambda: site.stored(key) >= answered)
    assert site.stored(key) == answered
    return answered


def network_of(site: Rig) -> tuple[Network, list[Namespace]]:
    """And the machines of the instances."""
    assert site.network is not None
    machines = [one.machine for one in site.instances]
    return site.network, [machine for machine in machines if isinstance(machine, Namespace)]


def namespace(machine: object) -> Namespace:
    assert isinstance(machine, Namespace)
    return machine


def test_a_primary_of_the_keys_that_goes_silent_costs_no_verified_key_and_revives_no_revoked_one(whole: Rig) -> None:
    """Again and again, each time right after a revocation was acknowledged. Usage is what was answered, exactly."""
    known = whole.issue()
    took, passed = [], []
    with loads(whole, known) as of_known:
        for _ in range(_ROUNDS):
            revoked, new = whole.issue(), whole.issue()
            with loads(whole, revoked) as of_revoked:
                until(lambda: all(load.statuses[200] > 10 for load in of_revoked))
                assert whole.revoke(revoked) == 0
                acknowledged, old = time.monotonic(), whole.trio.primary()
                whole.silence(old)
                promoted = whole.promoted(old)
                with loads(whole, new) as of_new:
                    until(lambda: all(load.statuses[200] for load in of_new))
                    took += [load.first(200) - promoted for load in of_new]
                passed += [load.last(200) - acknowledged for load in of_revoked]
                assert all(load.statuses[401] for load in of_revoked)
            whole.heal()
            whole.settle()
    tell(f"{_ROUNDS} times: unverified keys answered {min(took):.2f} to {max(took):.2f} s after promotion; the last "
         f"answer of a revoked key was asked for {max(passed):+.3f} s after the acknowledgement")  # fmt: skip
    assert {status for load in of_known for status in load.statuses} == {200}
    assert max(passed) < 0
    assert max(took) < 2
    assert whole.wrong(*of_known) == []
    tell(f"usage: {until_stored(whole, known, of_known):,} answered and stored")


@needs_namespaces
def test_who_is_cut_off_with_the_old_primary_trusts_it_for_a_minute(whole: Rig) -> None:
    """A key that is revoked on the other side passes there for 60 s at most, then all get 503; healed, all is well."""
    network, machines = network_of(whole)
    revoked, good = whole.issue(), whole.issue()
    with loads(whole, revoked, good) as made:
        of_revoked, of_good = made[: len(machines)], made[len(machines) :]
        until(lambda: all(load.statuses[200] > 10 for load in made))
        old = whole.trio.primary()
        network.part([machines[0], namespace(old.machine)])
        began = time.monotonic()
        whole.promoted(old)
        assert whole.revoke(revoked) == 0
        acknowledged = time.monotonic()
        until(lambda: all(load.statuses[401] for load in of_revoked[1:]))
        while time.monotonic() < began + _CUT_OFF_SECONDS:
            time.sleep(1)
        passed = of_revoked[0].last(200) - acknowledged
        away = of_good[0].first(503) - began
        network.heal()
        healed = time.monotonic()
        until(lambda: bool(of_revoked[0].first(401, healed) and of_good[0].first(200, healed)))
        right = max(of_revoked[0].first(401, healed), of_good[0].first(200, healed)) - healed
        assert of_revoked[0].last(200) < healed
        last_503 = of_good[0].last(503) - healed
    tell(f"cut off for {_CUT_OFF_SECONDS:.0f} s: a revoked key passed for {passed:.1f} s after its revocation; 503 "
         f"after {away:.1f} s; right {right:.2f} s after healing, the last 503 {last_503:+.2f} s")  # fmt: skip
    assert of_revoked[0].statuses.keys() == {200, 503, 401}
    assert of_good[0].statuses.keys() == {200, 503}
    assert {status for load in of_good[1:] for status in load.statuses} == {200}
    assert passed <= 60
    assert right <= 5
    assert whole.wrong(*made) == []
    tell(f"usage: {until_stored(whole, good, of_good):,} answered and stored")


@needs_namespaces
def test_who_is_cut_off_from_releases_and_other_instances_serves_on_and_follows_when_healed(whole: Rig) -> None:
    network, machines = network_of(whole)
    key = whole.issue()
    with loads(whole, key) as made:
        before = made[0].answers[-1].release
        network.part(machines[:1], [*machines[1:], namespace(whole.store.machine)])
        release = whole.publish(790)
        until(lambda: all(load.first(200, release=release) for load in made[1:]))
        until(lambda: whole.instances[0].ready().json()["status"] == "degraded")
        reasons = whole.instances[0].ready().json()["reasons"]
        assert made[0].answers[-1].release == before
        network.heal()
        healed = time.monotonic()
        until(lambda: bool(made[0].first(200, release=release)))
        followed = made[0].first(200, release=release) - healed
        until(lambda: whole.instances[0].ready().json()["status"] == "ready")
        ready = time.monotonic() - healed
    tell(f"cut off from the store of releases: {reasons}; followed {followed:.1f} s, ready {ready:.1f} s after healing")
    assert {status for load in made for status in load.statuses} == {200}
    assert whole.wrong(*made) == []


def test_a_primary_of_the_cache_that_goes_silent_costs_no_answer_and_holds_no_look_up_up(whole: Rig) -> None:
    key = whole.issue()
    with loads(whole, key) as made:
        until(lambda: all(load.statuses[200] > 50 for load in made))
        gone = whole.cluster.owner(slot_of("any"))
        before = [_late(whole, number) for number in range(len(made))]
        whole.silence(gone)
        until(lambda: all(one.ready().json()["status"] == "degraded" for one in whole.instances))
        until(lambda: all(one.ready().json()["status"] == "ready" for one in whole.instances))
        asked = [len(load.answers) for load in made]
        until(lambda: all(len(load.answers) > number + 100 for load, number in zip(made, asked, strict=True)))
        late = [_late(whole, number) - before[number] for number in range(len(made))]
    slowest = max(answer.done - answer.sent for load in made for answer in load.answers)
    number = sum(len(load.answers) for load in made)
    tell(f"{number:,} answers, the slowest after {slowest * 1000:.0f} ms; look-ups in the cache over 0.1 s: {late}")
    assert {status for load in made for status in load.statuses} == {200}
    assert whole.wrong(*made) == []
    assert not any(late)


def _late(site: Rig, number: int) -> float:
    """How many look-ups of an instance took the shared cache more than twice its budget, 50 ms: machines are busy."""
    text = site.instances[number]._operators("/metrics").text  # both counts at one moment: look-ups go on
    buckets = r'forecast_cache_lookup_seconds_bucket{le="([^"]+)",tier="shared"} (\S+)'
    counts = {bound: float(count) for bound, count in re.findall(buckets, text)}
    return counts["+Inf"] - counts["0.1"]


def test_a_release_and_rollbacks_reach_all_instances_within_two_seconds_and_every_answer_is_of_its_release(
    whole: Rig,
) -> None:
    key = whole.issue()
    took: list[float] = []
    with loads(whole, key) as made, _switches(whole) as switched:
        for change in range(4):
            number = len(switched)
            if change:
                whole.extracts("rollback")
            else:
                whole.publish(791)
            until(lambda: len(switched) > number)  # noqa: B023 - called at once
            at, release = switched[-1]
            until(lambda: all(load.first(200, at, release) for load in made))  # noqa: B023 - as above
            took += [load.first(200, at, release) - at for load in made]
    tell(f"after the pointer changed, an instance's first answer of the new release: {min(took):.2f}-{max(took):.2f} s")
    assert max(took) <= 2
    assert {status for load in made for status in load.statuses} == {200}
    assert whole.wrong(*made) == []


@contextmanager
def _switches(site: Rig) -> Iterator[list[tuple[float, str]]]:
    """When the pointer changed while this lasts, and to which release, as whoever asks all the time sees it."""
    seen: list[tuple[float, str]] = []
    ended = threading.Event()

    def look() -> None:
        last = None
        with site.store.machine.inside():
            own = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
            s3 = boto3.client("s3", endpoint_url=site.store.endpoint, region_name=REGION, **own)
            while not ended.wait(0.01):
                stored = s3.get_object(Bucket="releases", Key="prefix/current.json")["Body"].read()
                release = json.loads(stored.splitlines()[0])["release"]
                if last not in (None, release):
                    seen.append((time.monotonic(), release))
                last = release

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def test_an_instance_with_an_empty_folder_is_ready_within_ten_seconds(whole: Rig, tmp_path: Path) -> None:
    machine = whole.instances[0].machine if whole.network is None else whole.network.machine()
    began = time.monotonic()
    with serving(whole.env_of(9), tmp_path / "serve.log", machine=machine) as instance:
        until(lambda: instance.ready().status_code == 200)
        took = time.monotonic() - began
    tell(f"ready {took:.1f} s after it was started on an empty folder")
    assert took < 10


@needs_namespaces
def test_an_instance_follows_a_name_to_the_machine_that_took_over(whole: Rig, tmp_path: Path) -> None:
    """Plain URLs of keys and cache, whose machine goes silent; its name leads to the replica's from then on."""
    network, _ = network_of(whole)
    ours, old_machine, new_machine = (network.machine() for _ in range(3))
    old = PortServer(tmp_path / "old", *("--appendonly", "yes"), machine=old_machine)
    new = PortServer(tmp_path / "new", *("--appendonly", "yes"), machine=new_machine)
    new.port, new.node = old.port, Node(new_machine.address, old.port)
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{old_machine.address} keys.test\n")
    try:
        old.start()
        new.start().command("REPLICAOF", *map(str, old.node))
        wait_until(lambda: new.command("INFO", "replication")["master_link_status"] == "up", "a replica in step")
        named = f"redis://keys.test:{old.port}/0"
        env = whole.env_of(8) | {"FORECAST_KEYS_URL": named, "FORECAST_CACHE_URL": named}
        commands = env | {"FORECAST_KEYS_URL": old.url, "FORECAST_CACHE_URL": old.url}
        prefix = ours.with_names(hosts)
        with ours.inside():
            known, fresh = issue_key(commands), issue_key(commands)
        with serving(env, tmp_path / "serve.log", machine=ours, prefix=prefix) as instance:
            until(lambda: instance.zip_code(known).status_code == 200)
            with Load(instance, known) as of_known:
                until(lambda: of_known.statuses[200] > 50)
                network.unplug(old_machine)
                with Load(instance, fresh) as of_fresh:
                    until(lambda: of_fresh.statuses[503] > 10)
                new.command("REPLICAOF", "NO", "ONE")
                hosts.write_text(f"{new_machine.address} keys.test\n")
                moved = time.monotonic()
                with Load(instance, fresh) as of_fresh:
                    until(lambda: of_fresh.statuses[200] > 0)
                until(lambda: instance.ready().json()["status"] == "ready")
                took = of_fresh.first(200) - moved
                well = time.monotonic() - moved
        tell(f"once the name led elsewhere, unverified keys were answered in {took:.2f} s; all well in {well:.2f} s")
        assert of_known.statuses.keys() == {200}
    finally:
        old.kill()
        new.kill()

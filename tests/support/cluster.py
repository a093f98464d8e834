"""A real cluster of Valkeys on this machine: primaries, each with a replica, that a test can kill and move slots of."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from service.base.batched import batched
from service.redis.cluster.slots import SLOTS
from tests.support.network import HERE, Machine
from tests.support.sentinels import PortServer, free_port
from tests.support.waiting import until

_PRIMARIES = 3
# Slots that one mover has on their way at once.
_AT_ONCE = 25
# Side by side: a server answers SETSLOT once its replica has it, so that one mover is mostly waiting.
_MOVERS = 8
# After this silence a node counts as gone, and its replica takes over.
_NODE_TIMEOUT_MILLISECONDS = 1000


class ClusterServer(PortServer):
    """One node. What it holds is in memory alone."""

    def __init__(self, folder: Path, *options: str, machine: Machine = HERE) -> None:
        self.bus = free_port()
        enabled = ("--cluster-enabled", "yes", "--cluster-port", str(self.bus))
        tolerant = ("--cluster-require-full-coverage", "no", "--cluster-allow-reads-when-down", "yes")
        timeout = ("--cluster-node-timeout", str(_NODE_TIMEOUT_MILLISECONDS))
        reported = (*enabled, *tolerant, *timeout, "--repl-diskless-sync-delay", "0", *options)
        super().__init__(folder, *reported, machine=machine)

    @property
    def id(self) -> str:
        return str(self.command("CLUSTER", "MYID").decode())

    @property
    def is_primary(self) -> bool:
        return bool(self.command("INFO", "replication")["role"] == "master")

    def sees(self, slot: int) -> int | None:
        """The port of whoever has `slot`, as this node says."""
        ranges = self.command("CLUSTER", "SLOTS")
        return next((primary[1] for first, last, primary, *_ in ranges if first <= slot <= last), None)

    def knows(self, nodes: int) -> bool:
        return f"cluster_known_nodes:{nodes}\r\n" in self.command("CLUSTER", "INFO").decode()

    def replicates(self, primary: str) -> None:
        """Follows the node with this id, as soon as it has heard of it."""

        def reported() -> bool:
            try:
                return bool(self.command("CLUSTER", "REPLICATE", primary))
            except RedisError:
                return False

        until(reported)

    def is_fine(self) -> bool:
        """It takes part in the cluster, and is a primary, or has what its primary has."""
        link = self.command("INFO", "replication")
        in_step = link["role"] == "master" or link["master_link_status"] == "up"
        return in_step and "cluster_state:ok" in self.command("CLUSTER", "INFO").decode()


class Cluster:
    """Three primaries with a third of the slots each, and a replica of each."""

    def __init__(self, folder: Path, *options: str, machines: Sequence[Machine] = (HERE,) * 2 * _PRIMARIES) -> None:
        self.nodes = [
            ClusterServer(folder / str(number), *options, machine=machine) for number, machine in enumerate(machines)
        ]
        self.primaries, self.replicas = self.nodes[:_PRIMARIES], self.nodes[_PRIMARIES:]  # as they began

    @property
    def url(self) -> str:
        return self.url_of("")

    def url_of(self, credentials: str) -> str:
        return f"redis+cluster://{credentials}{','.join(str(one.node) for one in self.primaries)}"

    def start(self) -> "Cluster":
        for one in self.nodes:
            one.start()
        for number, one in enumerate(self.primaries):
            one.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            one.command("CLUSTER", "ADDSLOTSRANGE", _edge(number), _edge(number + 1) - 1)
        for one in self.nodes:
            for other in self.nodes:
                if other is not one:
                    one.command("CLUSTER", "MEET", other.node.host, other.node.port, other.bus)
        until(lambda: all(one.knows(len(self.nodes)) for one in self.nodes))
        for primary, replica in zip(self.primaries, self.replicas, strict=True):
            replica.replicates(primary.id)
        until(lambda: all(one.is_fine() for one in self.nodes))
        return self

    def empty(self) -> None:
        for one in self.nodes:
            if one.is_primary:
                one.command("FLUSHALL")

    def owner(self, slot: int) -> ClusterServer:
        """Who has `slot`, as all nodes that live agree."""

        def found() -> ClusterServer | None:
            said = {one.sees(slot) for one in self.nodes if one.runs}
            return next((one for one in self.nodes if said == {one.port} and one.is_primary), None)

        until(lambda: found() is not None)
        owner = found()
        assert owner is not None
        return owner

    def move(self, slots: Sequence[int], source: ClusterServer, target: ClusterServer) -> None:
        """Moves slots with what they hold, some at a time, as the cluster's own tools do it."""
        rest = [one for one in self.nodes if one.runs and one.is_primary and one not in (source, target)]
        source_id, target_id = source.id, target.id
        with ExitStack() as opened:
            old, new, *others = (opened.enter_context(Redis.from_url(one.url)) for one in (source, target, *rest))

            def move_some(some: Sequence[int]) -> None:
                _tell(new, [(slot, "IMPORTING", source_id) for slot in some])
                _tell(old, [(slot, "MIGRATING", target_id) for slot in some])
                for slot in some:
                    _migrate(slot, old, target)
                for client in (new, old, *others):
                    _tell(client, [(slot, "NODE", target_id) for slot in some])

            movers = opened.enter_context(ThreadPoolExecutor(_MOVERS))
            list(movers.map(move_some, batched(slots, _AT_ONCE)))

    def kill(self) -> None:
        for one in self.nodes:
            one.kill()


def _migrate(slot: int, source: Redis, target: ClusterServer) -> None:
    while names := source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):  # type: ignore[no-untyped-call]
        words = ("MIGRATE", target.node.host, target.node.port, "", 0, 5000, "KEYS", *names)
        source.execute_command(*words)  # type: ignore[no-untyped-call]


def _tell(client: Redis, changes: Iterable[tuple[int, str, str]]) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for change in changes:
            pipeline.execute_command("CLUSTER", "SETSLOT", *change)  # type: ignore[no-untyped-call]
        pipeline.execute()


def _edge(number: int) -> int:
    return SLOTS * number // _PRIMARIES

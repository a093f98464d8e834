"""Machines on a network of their own: namespaces on a bridge, which a test can part as networks do. Nothing arrives
then, and nobody is reported: neither a reset nor a closed connection.

What keeps a namespace is a process that waits for the end of this one, so nothing is left behind however a test ends.
"""

import ctypes
import functools
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000
# Packets to this address arrive nowhere.
_NOBODY = "02:00:00:00:00:00"
_SET_NAMES = 'mount --bind "$0" /etc/hosts && exec "$@"'


class Machine:
    """Where processes of a test run. This one is the machine that the tests are on, whose processes share its ports.

    `address` is where others reach it, and `prefix` goes before a command that is to run there.
    """

    address = "127.0.0.1"
    prefix: tuple[str, ...] = ()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What this thread connects to meanwhile, it connects to from there. So do threads that it starts."""
        yield


HERE = Machine()


class Namespace(Machine):
    """A machine with an address of its own. Made by a Network, which ends it."""

    def __init__(self, number: int) -> None:
        self.link = f"m{number}"  # its end of the cable is eth0, the bridge's has this name
        self.address = f"10.77.0.{number}"
        self._holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        self._holder.stdout.read(1)  # it runs, so the namespace is there
        self.path = f"/proc/{self._holder.pid}/ns/net"
        self.prefix = ("nsenter", f"--net={self.path}")
        self.ip("link set lo up")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def with_names(self, hosts: Path) -> tuple[str, ...]:
        """A `prefix` whose commands take names from the file `hosts`, as it is at each look."""
        return (*self.prefix, "unshare", "--mount", "sh", "-c", _SET_NAMES, str(hosts))

    def ip(self, *lines: str) -> None:
        command = [*self.prefix, "ip", "-batch", "-"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)

    @contextmanager
    def inside(self) -> Iterator[None]:
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _enter(self.path)
            try:
                yield
            finally:
                _enter(f"/proc/self/fd/{here}")
        finally:
            os.close(here)

    def close(self) -> None:
        self._holder.communicate()


def _enter(path: str) -> None:
    there = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(there, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(there)


class Network:
    """Machines that reach each other, and no other, until they are parted."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._bridge = Namespace(0)
        self._bridge.ip("link add bridge type bridge", "link set bridge up")
        self._machines: list[Namespace] = []

    def machine(self) -> Namespace:
        made = Namespace(next(self._numbers))
        self._machines.append(made)
        self._bridge.ip(
            f"link add {made.link} type veth peer name eth0 netns {made.pid}", f"link set {made.link} master bridge up"
        )
        made.ip(f"addr add {made.address}/24 dev eth0", "link set eth0 up")
        return made

    def unplug(self, machine: Namespace) -> None:
        self._bridge.ip(f"link set {machine.link} down")

    def plug_in(self, machine: Namespace) -> None:
        self._bridge.ip(f"link set {machine.link} up")

    def part(self, some: Iterable[Namespace], others: Iterable[Namespace] | None = None) -> None:
        """From now on, nothing passes between `some` and `others`, which are all who are left if they are not named."""
        here = list(some)
        there = [one for one in self._machines if one not in here] if others is None else list(others)
        for side, far in ((here, there), (there, here)):
            lines = [f"neigh replace {one.address} lladdr {_NOBODY} dev eth0 nud permanent" for one in far]
            for machine in side:
                machine.ip(*lines)

    def heal(self) -> None:
        """All reach each other again."""
        for machine in self._machines:
            self.plug_in(machine)
            machine.ip("neigh flush dev eth0 nud permanent")

    def close(self) -> None:
        for machine in (*self._machines, self._bridge):
            machine.close()


@functools.cache
def permitted() -> bool:
    """Whether this machine has what a Network needs, and lets us use it."""
    if not all(shutil.which(program) for program in ("unshare", "nsenter", "ip")):
        return False
    trying = ["unshare", "--net", "--mount", "ip", "link", "add", "type", "bridge"]
    return subprocess.run(trying, capture_output=True, check=False).returncode == 0

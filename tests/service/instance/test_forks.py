"""Processes that are forked off one that has imported what they run: they are as if the supervisor had started them."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from service.instance import forks as forks_module
from service.instance.forks import ForkedChild, Forks

# What is forked must come from a process without threads, which that of the tests is not.
_SUPERVISOR = """
import asyncio, contextlib, errno, json, logging, os, signal, socket, sys, time, types
from service.instance import forks as module
from service.instance.children import wait_for_exit

def main():
    with socket.socket(fileno=int(sys.argv[2])) as control:
        with open(int(sys.argv[3]), "wb") as given:
            given.write(b"given")
        told = [os.getppid() == int(sys.argv[1]), os.getsid(0) == os.getpid(), os.read(0, 1).decode(),
                signal.getsignal(signal.SIGINT) is signal.SIG_DFL, descriptors()]
        control.sendall(json.dumps(told).encode())
        control.recv(10)
    sys.exit(7)

def descriptors():
    # libffi may have its own library open, which ctypes needs
    paths = ["/proc/self/fd/" + name for name in os.listdir("/proc/self/fd")]
    return sum("libffi" not in os.readlink(path) for path in paths if os.path.exists(path))

def import_all():
    sys.modules["forked"] = types.SimpleNamespace(main=main)

async def run(forks):
    reader, writer = os.pipe()
    child, control = await forks.start("forked", writer)
    os.close(writer)
    assert not control.getblocking()
    told = json.loads(await asyncio.get_running_loop().sock_recv(control, 1000))
    content = open(reader, "rb").read().decode()
    assert child.poll() is None
    control.close()
    print(json.dumps({"reported": told, "content": content, "ended": await wait_for_exit(child), "pid": child.pid}))

module._PATIENCE_SECONDS = 60
forks = module.Forks()
forks.begin(import_all)
server = forks._server.pid
"""


def run(script: str, *prefix: str) -> Any:
    command = [*prefix, sys.executable, "-c", _SUPERVISOR + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, input="typed")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_forked_process_belongs_to_the_supervisor_and_has_what_it_was_given_and_no_more() -> None:
    (first, second), _ = run("asyncio.run(run(forks)); asyncio.run(run(forks))")
    for one in (first, second):
        # the last figure counts descriptors: the three usual ones, and two of the socket
        assert one["reported"] == [True, True, "", True, 5]
        assert one["content"] == "given"
        assert one["ended"] == "exit code 7"
    assert first["pid"] != second["pid"]


def test_processes_are_forked_one_after_the_other_and_their_ends_are_known() -> None:
    lines, _ = run("""
async def several():
    await asyncio.gather(*(run(forks) for _ in range(4)))
    child, control = await forks.start("forked", os.open(os.devnull, os.O_WRONLY))
    child.send_signal(signal.SIGKILL)
    print(json.dumps(await wait_for_exit(child)))
    child.send_signal(signal.SIGKILL)
    print(json.dumps(child.poll()))
asyncio.run(several())""")
    assert [one["ended"] for one in lines[:4]] == ["exit code 7"] * 4
    assert len({one["pid"] for one in lines[:4]}) == 4
    assert lines[4:] == ["signal 9", -9]


def test_a_signal_that_comes_before_a_forked_process_has_begun_is_not_lost() -> None:
    """As of a stop in that moment, which would wait for it till the end of the drain time."""
    lines, _ = run("""
become = module._become
def later(*given):
    time.sleep(0.3)
    become(*given)
module._become = later
slow = module.Forks()
slow.begin(import_all)
async def stop_at_once():
    child, control = await slow.start("forked", os.open(os.devnull, os.O_WRONLY))
    child.send_signal(signal.SIGTERM)
    print(json.dumps(await wait_for_exit(child)))
asyncio.run(stop_at_once())""")
    assert lines == ["signal 15"]


def test_an_exit_code_is_known_where_ends_of_children_were_ignored() -> None:
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    (one,), errors = run("asyncio.run(run(forks))", sys.executable, "-c", ignore)
    assert one["ended"] == "exit code 7"
    assert errors == ""


def test_without_a_free_descriptor_nothing_starts_and_later_it_is_forked_all_the_same() -> None:
    lines, _ = run("""
import resource
async def start():
    loop = asyncio.get_running_loop()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        await forks.start("forked", 1)
    except OSError as error:
        print(json.dumps(errno.errorcode[error.errno]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    await run(forks)
asyncio.run(start())""")
    assert lines[0] == "EMFILE"
    assert lines[1]["ended"] == "exit code 7"


@pytest.mark.parametrize(
    "trouble",
    [
        "os.kill(server, signal.SIGKILL)",
        "os.kill(server, signal.SIGSTOP)",
        "module.adopt_orphans = contextlib.nullcontext",
    ],
    ids=["killed", "stopped", "gives its child to another parent"],
)
def test_without_the_one_that_forks_each_process_is_a_new_interpreter(trouble: str) -> None:
    """Whether it was killed, does not answer, or the kernel gives its children to another parent, so that no end would
    ever be known. That is reported once."""
    lines, errors = run(f"""
logging.basicConfig()
module._PATIENCE_SECONDS = 0.2
{trouble}
async def start():
    child, control = await forks.start("service.instance.kept_main")
    print(json.dumps(type(child).__name__))
    child.send_signal(signal.SIGKILL)
    await wait_for_exit(child)
asyncio.run(start())
asyncio.run(start())
print(json.dumps(os.path.exists(f"/proc/{{server}}")))""")
    assert lines == ["Popen", "Popen", False]
    assert errors.count("the fork server failed") == 1


def test_where_nothing_can_be_forked_an_instance_starts_all_the_same() -> None:
    lines, errors = run("""
logging.basicConfig()
fork, none = os.fork, module.Forks()
def at_the_limit():
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
os.fork = at_the_limit
none.begin(import_all)
os.fork = fork
print(json.dumps(none._server is None))
none.close()""")
    assert lines == [True]
    assert errors.count("processes start slowly") == 1


def test_the_one_that_forks_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads from a disk that hangs cannot be killed, and an instance goes on."""

    class InTheKernel(ForkedChild):
        def poll(self) -> int | None:
            return None

        def send_signal(self, number: int) -> None:
            assert number == signal.SIGKILL

    monkeypatch.setattr(forks_module, "_DEATH_SECONDS", 0.01)
    forks = Forks()
    forks._requests, theirs = socket.socketpair()
    with theirs:
        forks._server = InTheKernel(0)
        forks.close()
        assert theirs.recv(1) == b""


def test_where_threads_cannot_be_counted_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks_module, "_THREADS", Path("/nowhere"))
    forks = Forks()
    forks.begin(lambda: os._exit(3))
    assert forks._server is None


@pytest.mark.parametrize("state", ["", "os.kill(server, signal.SIGSTOP)"])
def test_it_ends_with_the_supervisor(state: str) -> None:
    script = f"""
while open(f"/proc/{{server}}/comm").read() != "forecast-forks\\n":
    time.sleep(0.01)
{state}
print(server, flush=True)
time.sleep(60)"""
    with subprocess.Popen([sys.executable, "-c", _SUPERVISOR + script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
    asyncio.run(asyncio.wait_for(readable(server), 30))
    os.close(server)


async def readable(descriptor: int) -> None:
    came = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, came.set)
    await came.wait()


def test_a_process_with_threads_forks_nothing() -> None:
    """One of them may hold a lock, which nobody would release in the fork."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    before = set(Path("/proc/self/task").iterdir())
    forks = Forks()
    try:
        forks.begin(lambda: os._exit(3))
        assert forks._server is None
    finally:
        stop.set()
        thread.join()
    forks.close()
    assert len(before) > 1

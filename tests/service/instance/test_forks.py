"""Processes that are forked off one that has imported what they run: they are as if the supervisor had started them."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from service.instance.forks import Forks

# What is forked must come from a process without threads, which that of the tests is not.
_SUPERVISOR = """
import asyncio, json, os, signal, socket, sys, types
from service.instance import forks as module
from service.instance.children import ended

def main():
    with socket.socket(fileno=int(sys.argv[2])) as control:
        with open(int(sys.argv[3]), "wb") as given:
            given.write(b"given")
        told = [os.getppid() == int(sys.argv[1]), os.getsid(0) == os.getpid(), os.read(0, 1).decode(),
                signal.getsignal(signal.SIGINT) is signal.SIG_DFL, len(os.listdir("/proc/self/fd"))]
        control.sendall(json.dumps(told).encode())
        control.recv(10)
    sys.exit(7)

def import_all():
    sys.modules["forked"] = types.SimpleNamespace(main=main)

async def run(forks):
    reader, writer = os.pipe()
    child, control = await forks.start("forked", writer)
    os.close(writer)
    told = json.loads(await asyncio.get_running_loop().sock_recv(control, 1000))
    content = open(reader, "rb").read().decode()
    assert child.poll() is None
    control.close()
    print(json.dumps({"told": told, "content": content, "ended": await ended(child), "pid": child.pid}))

module._PATIENCE_SECONDS = 0.2
forks = module.Forks()
forks.begin(import_all)
server = forks._server.pid
"""


def run(script: str) -> Any:
    done = subprocess.run([sys.executable, "-c", _SUPERVISOR + script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_forked_process_belongs_to_the_supervisor_and_has_what_it_was_given_and_no_more() -> None:
    """A session of its own, nothing to read, the usual signals; how it ended is told."""
    (first, second), _ = run("asyncio.run(run(forks)); asyncio.run(run(forks))")
    for one in (first, second):
        # its descriptors: the three usual ones, the socket, and the folder that lists them
        assert one["told"] == [True, True, "", True, 5]
        assert one["content"] == "given"
        assert one["ended"] == "exit code 7"
    assert first["pid"] != second["pid"]


def test_whoever_started_it_hears_of_a_signal_that_ended_it() -> None:
    lines, _ = run("""
async def killed():
    child, control = await forks.start("forked", 1)
    child.send_signal(signal.SIGKILL)
    print(json.dumps(await ended(child)))
    child.send_signal(signal.SIGKILL)
    print(json.dumps(child.poll()))
asyncio.run(killed())""")
    assert lines[-2:] == ["signal 9", -9]


@pytest.mark.parametrize("trouble", ["os.kill(server, signal.SIGKILL)", "os.kill(server, signal.SIGSTOP)"])
def test_without_the_one_that_forks_each_process_is_a_new_interpreter(trouble: str) -> None:
    """Whether it was killed, or does not answer. That is told once."""
    lines, errors = run(f"""
import logging
logging.basicConfig()
{trouble}
async def start():
    child, control = await forks.start("service.instance.watcher_main")
    print(json.dumps(type(child).__name__))
    child.send_signal(signal.SIGKILL)
    await ended(child)
asyncio.run(start())
asyncio.run(start())
print(json.dumps(os.path.exists(f"/proc/{{server}}")))""")
    assert lines == ["Popen", "Popen", False]
    assert errors.count("the one that forked them failed") == 1


def test_it_ends_with_the_supervisor() -> None:
    script = "import time; print(server, flush=True); time.sleep(60)"
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

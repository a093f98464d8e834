"""Threads that decode the same type for the first time at the same moment crash nothing."""

import subprocess
import sys

# With types that nobody has decoded yet, threads that take turns all the time, and garbage that is always collected.
_PROGRAM = """
import gc, sys, threading, types
from config.decoders import decoder_of

sys.setswitchinterval(1e-6)
for number in range(40):
    module = sys.modules[f"m{number}"] = types.ModuleType(f"m{number}")
    source = ["import msgspec", "class S0(msgspec.Struct): a: int = 0"]
    for n in range(1, 12):
        source.append(f"class S{n}(msgspec.Struct):\\n  a: int = 0\\n  b: 'S{n - 1} | None' = None")
    exec("\\n".join(source), module.__dict__)
    gc.set_threshold(5, 2, 2)
    together = threading.Barrier(6)

    def decode():
        together.wait()
        assert decoder_of(module.S11).decode(b'{"b": {"a": 1}}').b.a == 1

    threads = [threading.Thread(target=decode) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_decode_a_type_for_the_first_time_together() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")

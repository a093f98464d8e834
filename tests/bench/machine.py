"""What a run was made on: only ratios of one run on one machine carry over."""

import os
import platform
import sysconfig
from pathlib import Path

# Options of configure.
_BUILDS = {"profile-guided": "--enable-optimizations", "optimised when linked": "--with-lto"}


def machine() -> str:
    """The processor, as the system names it, how many of them, and how the interpreter was built."""
    names = [
        line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line
    ]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores; {interpreter()}"


def interpreter(arguments: str | None = None) -> str:
    """What runs the service; `arguments` are those of its configure. Profile-guided, it takes 7 % less user time."""
    if arguments is None:
        arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    built = [name for name, option in _BUILDS.items() if option in arguments]
    how = ", ".join(built) if built else "built without profile-guided optimisation"
    return f"{platform.python_implementation()} {platform.python_version()}, {how}"

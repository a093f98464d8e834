"""What a run was made on: only ratios of one run on one machine carry over."""

import os
import platform
import sys
import sysconfig
from pathlib import Path

# Options of configure.
_BUILDS = {"profile-guided": "--enable-optimizations", "optimised when linked": "--with-lto"}
# Their rules build it so with commands of their own, which its configure does not tell.
_BUILT_BY = ("debian", "ubuntu")


def machine() -> str:
    """The processor, as the system names it, how many of them, and how the interpreter was built."""
    names = [
        line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line
    ]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores; {interpreter()}"


def interpreter(arguments: str | None = None, system: str | None = None) -> str:
    """What runs the service, which is worth 3 to 6 % of a hit. `arguments` are those of its configure; `system`
    is the one that it is a package of, or empty."""
    if arguments is None:
        arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    if system is None:
        system = _system() if sys.base_prefix == "/usr" else ""
    built = [name for name, option in _BUILDS.items() if option in arguments or system in _BUILT_BY]
    how = ", ".join(built) if built else "built without profile-guided optimisation"
    return f"{platform.python_implementation()} {platform.python_version()}, {how}"


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["ID"]
    except OSError:
        return ""

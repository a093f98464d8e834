"""The Containerfile as its instructions, read once for all tests of it."""

import json
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Containerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "config" / "Containerfile").read_text(), flags=re.MULTILINE)
    found: list[list[tuple[str, str]]] = [[]]  # the first has what precedes all stages
    for line in text.replace("\\\n", "").splitlines():
        instruction, _, arguments = line.strip().partition(" ")
        if instruction == "FROM":
            found.append([])
        if instruction:
            found[-1].append((instruction, arguments.strip()))
    return found


def final(instruction: str) -> list[str]:
    """The arguments of an instruction of the image that is shipped."""
    return [arguments for name, arguments in stages()[-1] if name == instruction]


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for line in final("ENV") for word in shlex.split(line))


def image_health_check() -> list[str]:
    """The command of the image's health check."""
    command: list[str] = json.loads(final("HEALTHCHECK")[0].partition("CMD ")[2])
    return command


def base_images() -> list[str]:
    """The images that the stages begin with, other than stages."""
    named = {line.split(" AS ")[1] for line in _froms() if " AS " in line}
    [default] = [arguments.removeprefix("BASE=") for arguments in _arguments("ARG") if arguments.startswith("BASE=")]
    first = [line.split()[0].replace("${BASE}", default) for line in _froms()]
    return [image for image in first if image not in named]


def _froms() -> list[str]:
    return _arguments("FROM")


def _arguments(instruction: str) -> list[str]:
    return [arguments for stage in stages() for name, arguments in stage if name == instruction]

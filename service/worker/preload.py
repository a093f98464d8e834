"""Imports all that a worker runs, for a process that forks workers off."""

from service.http.app import build_litestar
from service.worker import main, serving

__all__ = ["main", "preload", "serving"]


def preload() -> None:
    build_litestar([])  # Litestar imports a third of itself when it is first used

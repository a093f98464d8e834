"""Files that hang: for Python by an order (hanging/sitecustomize.py), for DuckDB by a FIFO in a file's place."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_HOOK = Path(__file__).parent / "hanging"


class Hanging:
    """`env` is that of an instance whose access to files can be made to hang."""

    def __init__(self, env: Mapping[str, str], order: Path) -> None:
        self.env = {**env, "PYTHONPATH": str(_HOOK), "HANGING": str(order)}
        self._order = order

    def begin(self, *prefixes: Path, for_ever: bool = False) -> None:
        """From now on. `for_ever`: what hangs does not return when it ends, as with a server that never comes back."""
        lines = [*map(str, prefixes), *(["for ever"] if for_ever else [])]
        aside = self._order.with_name("order.new")
        aside.write_text("\n".join(lines))
        aside.rename(self._order)

    def end(self) -> None:
        self._order.unlink()


@contextmanager
def hang_file(path: Path) -> Iterator[None]:
    """Whoever opens `path` until the block ends waits for ever, also when the file is back."""
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    os.mkfifo(path)
    try:
        yield
    finally:
        kept.replace(path)

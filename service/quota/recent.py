"""A map of what was used lately, bounded in number and time."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Keeps at most about `most` values. One that nobody asks for during `seconds`, or up to twice that, is forgotten.

    Its owner has it for as long as it lives. There are two generations: a value that is asked for moves to the young
    one. When that is full or has had its time, it becomes the old one, and what is left in the old one is dropped. So
    nothing is ever sorted or searched, and a hit in `young` costs one look into a dict.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.young: dict[str, T] = {}  # may be read directly, which is faster than `find`
        self._old: dict[str, T] = {}
        self._half = max(1, most // 2)
        self._seconds = seconds
        self._began = float("-inf")

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def find(self, name: str, now: float) -> T | None:
        found = self.young.get(name)
        if found is None:
            found = self._old.pop(name, None)
            if found is not None:
                self.put(name, found, now)
        return found

    def put(self, name: str, value: T, now: float) -> None:
        """Remembers `value`, as of `now` in seconds."""
        if len(self.young) >= self._half or now - self._began >= self._seconds:
            self._old, self.young = self.young, {}
            self._began = now
        self.young[name] = value

"""The drops of an inbox that are held: validated, and waiting for a person to approve or discard them.

Only a person's decision moves a drop out of held/, in one rename; newer drops go live meanwhile.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from config.printable import printable
from service.publishing.inbox_events import Event, Telling
from service.publishing.inbox_folders import drop_in
from service.publishing.inbox_report import DropReport
from service.publishing.inbox_status import StatusFile
from warehouse.files.atomic import exclusive
from warehouse.files.reading import read_struct
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.rules.all_rules import RULES
from warehouse.schema.errors import BusyError, CatalogError, InboxError, NoReleaseError

_SINCE = re.compile(r"-(\d{8}T\d{6}Z)(?:-\d+)?$")


class HeldDrop(msgspec.Struct, frozen=True):
    """One folder in held/, as it was found."""

    path: Path  # of the drop; its reports lie beside it
    since: datetime
    report: DropReport | None  # None if it is lost or damaged

    @property
    def id(self) -> str:
        """The name of its folder, which no other held drop has."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def delivered(self) -> datetime:
        """When the inbox took it; this orders drops."""
        return (self.report and self.report.delivered) or self.since

    def has(self, tables: Mapping[str, str]) -> bool:
        """Whether it brings exactly these tables; the values are checksums of their contents."""
        return self.report is not None and bool(tables) and self.report.tables == tables

    def is_live_in(self, release: Manifest | None) -> bool:
        """Whether `release` has what it brings: its approval was interrupted, say, or it was published by hand."""
        if release is None or self.report is None or not self.report.tables:
            return False
        return self.report.tables.items() <= {name: info.checksum for name, info in release.tables.items()}.items()

    def is_overtaken_by(self, release: Manifest | None) -> bool:
        """Whether `release` has a drop that was delivered later."""
        return release is not None and release.delivered > self.delivered and not self.is_live_in(release)

    def rules(self) -> list[str]:
        """The rules that hold it."""
        return self.report.rules() if self.report else []

    def way_out(self, hold: Collection[str]) -> str | None:
        """What can be done if it has errors that no approval accepts; None if it has none. `hold`: the rules of now."""
        beyond = [rule for rule in self.report.beyond_approval() if rule not in hold] if self.report else []
        if not beyond:
            return None
        path = shlex.quote(str(self.path.absolute()))
        way = f"publish it by hand: `forecast extracts publish {path} --accept ... --reason TEXT`"
        if any(RULES[rule].severity == "error" and not RULES[rule].override for rule in beyond if rule in RULES):
            way = "take it out, correct it and move it back into the inbox"
        return f"no approval covers {', '.join(beyond)}: discard it, or {way}"


def held_since(inbox: Path) -> dict[str, datetime]:
    """Since when each held drop waits, by id. Raises InboxError."""
    return {drop.parent.name: _since(drop.parent) for drop in _drops(inbox)}


def held_drops(inbox: Path) -> list[HeldDrop]:
    """All held drops, oldest delivery first. Raises InboxError."""
    found = [HeldDrop(drop, _since(drop.parent), read_report(drop.parent)) for drop in _drops(inbox)]
    return sorted(found, key=lambda held: (held.delivered, held.id))


def find_held(inbox: Path, name: str) -> HeldDrop:
    """The held drop whose id or name is `name`.

    Raises:
        InboxError: if there is none, or several drops have this name.
    """
    found = [held for held in held_drops(inbox) if held.id == name] or [
        held for held in held_drops(inbox) if held.name == name
    ]
    if not found:
        raise InboxError(f"no drop {printable(name)} is held in {inbox}; `forecast extracts held` lists those that are")
    if len(found) > 1:
        raise InboxError(f"{len(found)} drops are called {name}: name one of {', '.join(held.id for held in found)}")
    return found[0]


@contextmanager
def deciding(inbox: Path) -> Iterator[None]:
    """Only one decision is made at a time. A watcher may be at work: it adds held drops, and takes none away.

    Raises:
        BusyError: if another decision is being made.
        InboxError: if held/ cannot be written.
    """
    with ExitStack() as stack:
        try:
            alone = stack.enter_context(exclusive(inbox / "held" / ".lock"))
        except OSError as error:
            raise _unusable(inbox, error) from None
        if not alone:
            raise BusyError(f"another command is deciding on a held drop of {inbox}; try again when it is done")
        yield


def read_report(folder: Path) -> DropReport | None:
    """The report that lies beside a drop; None if it is lost or damaged."""
    try:
        return read_struct(folder / "report.json", DropReport)
    except (OSError, ValueError):
        return None


def current_release(data: Path) -> Manifest | None:
    """None if there is none, or it cannot be read."""
    with suppress(NoReleaseError, CatalogError):
        return Catalog(data).current()
    return None


def _drops(inbox: Path) -> Iterator[Path]:
    try:
        folders = [path for path in (inbox / "held").iterdir() if not path.name.startswith(".")]
        for folder in folders:
            with suppress(FileNotFoundError, NotADirectoryError):  # decided meanwhile, or somebody's own file
                drop = drop_in(folder)
                if drop is not None:
                    yield drop
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or not inbox.is_dir():  # before the first watcher, nothing is held
            raise _unusable(inbox, error) from None


def _since(folder: Path) -> datetime:
    """The time in the folder's name; of a folder that somebody else named, that of its last change."""
    match = _SINCE.search(folder.name)
    with suppress(ValueError):
        if match is not None:
            return datetime.strptime(match[1], "%Y%m%dT%H%M%S%z")
    with suppress(OSError):
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return datetime.now(UTC)


def _unusable(inbox: Path, error: OSError) -> InboxError:
    return InboxError(f"the inbox {inbox} cannot be used: {error.filename}: {error.strerror or error}")


class HeldWatch:
    """The held drops of one inbox from look to look. `InboxDrops` owns it."""

    def __init__(self, inbox: Path, telling: Telling) -> None:
        self._inbox = inbox
        self._telling = telling
        self._held: dict[str, datetime] = {}  # since when, by id

    def look(self, status: StatusFile) -> None:
        """Tells of drops that are held no more, and keeps the figures in `status` right. Raises InboxError."""
        before, self._held = self._held, held_since(self._inbox)
        for drop in before:
            if drop not in self._held:
                self._telling.tell_event(self._decided(drop))
        status.held(list(self._held.values()))

    def _decided(self, drop: str) -> Event:
        for place in ("published", "quarantine"):
            folder = self._inbox / place / drop
            report = read_report(folder)
            if report is not None and report.decision is not None:
                said = report.decision
                return Event(
                    event=said.what,
                    message=f"{report.drop} was {said.what} by {said.by}: {said.reason}",
                    drop=report.drop,
                    release=report.release,
                    place=str(folder / report.drop),
                    report=str(folder / "report.txt"),
                )
        return Event(event="gone", message=f"{drop} was taken out of held/", drop=drop)

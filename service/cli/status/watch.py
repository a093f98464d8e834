"""What `forecast top` sees: the instances, looked at once a second, through restarts."""

import time
from collections.abc import Sequence

from config.settings import Settings
from service.cli.instances.chosen import NONE_RUNS, ask_all, targets
from service.cli.status.several import AskedOverview, ask_overview
from service.operators.overview import Overview


class Watch:
    """Instances and the one that is shown. Lives as long as one `top`.

    `seen` is the newest overview of the one that is shown; since `away_since`, if that is set, it could not be asked,
    for the reason in `problem`.
    """

    def __init__(self, settings: Settings, url: str | None) -> None:
        self._settings = settings
        self._fixed = url
        self._shown: str | None = url
        self.asked: Sequence[AskedOverview] = ()
        self.seen: Overview | None = None
        self.away_since: float | None = None
        self.problem = ""

    def look(self) -> None:
        """Asks all instances that run now. Takes about as long as an answer may."""
        # a restart moves an instance to another process, and perhaps to another port
        found = targets(self._settings, self._fixed)
        self.asked = ask_all(self._settings, found, ask_overview)
        shown = next((one for one in self.asked if one.url == self._shown), self.asked[0] if self.asked else None)
        if shown is not None and shown.answer is not None:
            self.seen, self._shown = shown.answer, shown.url
            self.away_since = None
            return
        self.away_since = self.away_since or time.time()
        self.problem = str(shown.error) if shown else NONE_RUNS.format(self._settings.data_path.absolute())

    def show_next(self) -> None:
        """From the next look on, shows the instance after this one."""
        urls = [one.url for one in self.asked]
        if urls:
            at = urls.index(self._shown) if self._shown in urls else -1
            self._shown = urls[(at + 1) % len(urls)]

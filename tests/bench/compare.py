"""Side by side in one run: this project's tiers and their peers in alternating rounds."""

import os
from datetime import UTC, datetime

from tests.bench.contenders import PEERS, Contender, start_peers, start_tiers
from tests.bench.load import Sample, check_programs, measure, request_heads, write_requests
from tests.bench.machine import machine
from tests.bench.report import HEADERS, Headers, Results, Series, ratios
from tests.bench.stage import HOT_ZIP_CODES, Stage, console, stage
from tests.bench.verify import compared, warm

Found = dict[tuple[str, Headers], list[Sample]]


def compare(rounds: int, seconds: int) -> Results:
    """Measures everybody who is installed, `rounds` times, each time for `seconds`.

    Raises:
        BenchError: if something needed is missing, or somebody answers wrongly.
    """
    check_programs()
    before = os.getloadavg()[0]
    with stage() as set_up:
        console.print("publishing, starting everybody")
        set_up.publish()
        zips = set_up.zip_codes()
        tiers = start_tiers(set_up)
        others, missing = start_peers(set_up, _behind(tiers))
        contenders = tiers + others
        console.print("comparing answers, warming")
        likeness = compared(tiers[-1], contenders, zips[:HOT_ZIP_CODES])
        for contender in contenders:
            if contender.group == "hit":
                warm(contender, zips[:HOT_ZIP_CODES])
        found = _Rounds(set_up, contenders, zips).run(rounds, seconds)
    series = [Series(one.name, one.group, kind, found[one.name, kind]) for one in contenders for kind in HEADERS]
    return Results(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        load=(before, os.getloadavg()[0]),
        rounds=rounds,
        seconds=seconds,
        series=series,
        ratios=ratios(series),
        likeness=likeness,
        notes={peer.name: peer.note for peer in PEERS if peer.note},
        missing=missing,
    )


def _behind(tiers: list[Contender]) -> str:
    """The address that proxies pass what they do not have on to."""
    return next(tier.endpoint.base for tier in tiers if tier.group == "hit")


class _Rounds:
    def __init__(self, set_up: Stage, contenders: list[Contender], zips: list[str]) -> None:
        self._contenders = contenders
        asked = {"hit": zips[:HOT_ZIP_CODES], "miss": zips[HOT_ZIP_CODES:]}
        self._files = {
            one.name: write_requests(
                set_up.folder / f"{number}.requests", request_heads(one.endpoint, asked[one.group])
            )
            for number, one in enumerate(contenders)
        }
        self._cold = len(asked["miss"])
        self._next: dict[str, int] = {}

    def run(self, rounds: int, seconds: int) -> Found:
        found: Found = {}
        for number in range(rounds):
            # each round the other way round, so that nobody always follows the same one
            order = self._contenders if number % 2 == 0 else self._contenders[::-1]
            for contender in order:
                for kind in HEADERS:
                    found.setdefault((contender.name, kind), []).append(self._sample(contender, kind, seconds))
            rates = "; ".join(f"{one.name} {found[one.name, 'unique'][-1].rate:,.0f}" for one in order)
            console.print(f"round {number + 1}/{rounds}: {rates}", style="dim", soft_wrap=True)
        return found

    def _sample(self, contender: Contender, kind: Headers, seconds: int) -> Sample:
        contender.forget()
        start = self._next.get(contender.name, 0)
        file = self._files[contender.name]
        sample = measure(contender.endpoint.base, file, unique=kind == "unique", seconds=seconds, start=start)
        if contender.group == "miss":
            self._next[contender.name] = (start + round(sample.rate * seconds)) % self._cold
        return sample

"""The arithmetic of a comparison, and its picture."""

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec

from tests.bench import chart, report
from tests.bench.load import Sample
from tests.bench.report import Headers, Results, Series
from tests.bench.verify import Likeness


def series(name: str, headers: Headers, *rates: float) -> Series:
    samples = [Sample(rate, 0, 1.0, 2.0, 1e6 / rate, 0.5, 1500.0) for rate in rates]
    return Series(name, "hit", headers, samples)


def results(*measured: Series) -> Results:
    return Results(
        made_at="2026-11-20T00:00:00+00:00",
        machine="a <machine>",
        load=(0.0, 1.0),
        rounds=3,
        seconds=1,
        series=list(measured),
        ratios=report.ratios(list(measured)),
        likeness={one.name: Likeness(same_bytes=True, checks_keys=True) for one in measured},
        notes={},
        missing={"Varnish": "apt-get install varnish"},
    )


REDIS = "nginx with Lua, keys in Redis"
KEPT = "nginx with Lua"


def test_a_ratio_compares_samples_of_the_same_round() -> None:
    """A machine that is slow for one round is slow for both, and the ratio is not touched."""
    (ratio,) = report.ratios([series("Redis", "unique", 100, 10, 200), series(REDIS, "unique", 200, 20, 100)])

    assert (ratio.ours, ratio.peer, ratio.headers) == ("Redis", REDIS, "unique")
    assert (ratio.median, ratio.least, ratio.most) == (0.5, 0.5, 2.0)
    assert ratio.floor == 1.0


def test_a_pair_of_which_one_was_not_measured_is_left_out() -> None:
    assert report.ratios([series("Redis", "unique", 1.0), series(REDIS, "same", 1.0)]) == []


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = results(series("Redis", "unique", 3.0), series(KEPT, "unique", 4.0))
    report.save(written, tmp_path / "results.json", None)
    assert msgspec.json.decode((tmp_path / "results.json").read_bytes(), type=Results) == written


def test_the_chart_is_well_formed_and_names_everybody() -> None:
    drawn = chart.draw(
        results(
            *(series("Redis", kind, 30.0, 40.0, 50.0) for kind in report.HEADERS),
            *(series(KEPT, kind, 100.0, 100.0, 100.0) for kind in report.HEADERS),
        )
    )

    texts = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "this project: Redis" in texts
    assert KEPT in texts
    assert texts.count("0.40 (0.30 - 0.50)") == 2


def test_a_chart_without_its_usual_base_compares_with_who_is_there() -> None:
    drawn = chart.draw(results(*(series("Redis", kind, 30.0) for kind in report.HEADERS)))

    assert "Redis = 1" in drawn

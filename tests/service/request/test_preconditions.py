"""Preconditions of RFC 9110, section 13, on every answer that has a validator."""

import shutil
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.settings import Settings
from service.http.releases.ranges import Part, Unsatisfiable, requested_part
from service.http.static_file import static_file
from service.request.errors import CODES, ApiError
from service.request.preconditions import is_unchanged, read_date
from tests.conftest import SPRINGFIELD
from tests.support.drops import LOCATIONS, POPULATION, people, write_drop
from tests.support.problems import problem
from tests.support.publishing import publish
from tests.support.served import FORECAST, Served, served
from tests.support.waiting import until
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import roll_back

FILE = "/v1/releases/current/forecast.parquet"
VALIDATED = (
    f"{FORECAST}?zip_code=36436",
    f"{FORECAST}/batch?zip_code=36436",
    f"{FORECAST}/by-state?state_code=AL",
    "/v1/",
    "/v1/openapi.json",
    "/v1/releases",
    "/v1/releases.atom",
    "/v1/releases/current/changes?area=forecast",
    FILE,
)


@pytest.mark.parametrize("target", VALIDATED)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_if_match_holds_for_the_strong_tag_of_the_answer_alone(worker: Served, target: str, coding: str) -> None:
    for _ in range(3):
        whole = worker.ask(target, Accept_Encoding=coding)
        tag = whole.header("etag") or ""
        for matching in (tag, f'"other", {tag}', "*"):
            answer = worker.ask(target, Accept_Encoding=coding, If_Match=matching)
            assert (answer.status, answer.body) == (200, whole.body)
        for other in ('"other"', f"W/{tag}", tag.strip('"'), ""):
            assert problem(worker.ask(target, Accept_Encoding=coding, If_Match=other)) == (412, "precondition_failed")
        assert worker.ask(target, Accept_Encoding=coding, If_Match=tag, If_None_Match=tag).status == 304
        assert worker.ask(target, Accept_Encoding=coding, If_Match='"x"', If_None_Match=tag).status == 412
        head = worker.ask(target, "HEAD", Accept_Encoding=coding, If_Match='"x"')
        assert (head.status, head.body) == (412, b"")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{FORECAST}?zip_code=99999", 404),
        (f"{FORECAST}?zip_code=abc", 400),
        ("/v1/nowhere", 404),
        ("/v1/usage", 200),
        (f"{FILE}?page=2", 400),
    ],
)
def test_conditions_on_what_has_no_validator_are_ignored(worker: Served, target: str, status: int) -> None:
    """RFC 9110, 13.2.1: those of a request that ends otherwise than by success; usage has no tag."""
    plain = worker.ask(target, X_Request_Id="r1")
    failing = {"If_Match": '"x"', "If_Unmodified_Since": formatdate(0, usegmt=True)}
    for conditions in (failing, {"If_None_Match": "*"}):
        answer = worker.ask(target, X_Request_Id="r1", **conditions)
        assert answer.status == plain.status == status
        if status >= 400:
            assert answer.body == plain.body


def test_a_look_up_has_no_date_to_compare(worker: Served) -> None:
    target = f"{FORECAST}?zip_code=36436"
    answer = worker.ask(
        target, If_Unmodified_Since=formatdate(0, usegmt=True), If_Modified_Since=formatdate(usegmt=True)
    )
    assert (answer.status, answer.header("last-modified")) == (200, None)


def test_a_part_is_sent_only_of_the_file_that_was_begun(worker: Served) -> None:
    until(lambda: worker.ask(FILE, "HEAD").header("last-modified") is not None)  # absent in the second of the switch
    whole = worker.ask(FILE)
    tag, date = whole.header("etag") or "", whole.header("last-modified") or ""
    part = worker.ask(FILE, Range="bytes=4-9", If_Match=tag)
    assert (part.status, part.body) == (206, whole.body[4:10])
    assert problem(worker.ask(FILE, Range="bytes=4-", If_Match='"of the release before"'))[0] == 412
    assert problem(worker.ask(FILE, Range=f"bytes={len(whole.body)}-", If_Match='"x"'))[0] == 412
    assert worker.ask(FILE, Range=f"bytes={len(whole.body)}-", If_Match=tag).status == 416
    before = formatdate((read_date(date.encode()) or 0) - 1, usegmt=True)
    assert worker.ask(FILE, Range="bytes=4-9", If_Unmodified_Since=date).status == 206
    assert problem(worker.ask(FILE, Range="bytes=4-9", If_Unmodified_Since=before)) == (412, "precondition_failed")
    assert worker.ask(FILE, Range="bytes=4-9", If_Range=date).status == 206
    assert worker.ask(FILE, Range="bytes=4-9", If_Range=before).status == 200
    assert worker.ask(FILE, If_Modified_Since=date).status == 304
    assert worker.ask(FILE, If_Modified_Since=before).body == whole.body


def test_the_date_of_current_never_goes_back(settings: Settings, tmp_path: Path) -> None:
    """After a rollback, too: a client that has what was taken back must not go on with what came before."""
    data = tmp_path / "data"
    shutil.copytree(settings.data_path, data)
    figures = [row for row in POPULATION if row["zip_code"] != "63101"] + [people("63101", 2023, 2621)]
    drop = write_drop(tmp_path / "drop", locations=(*LOCATIONS, *SPRINGFIELD), population=figures)
    catalog = Catalog(data)
    first = catalog.current().id
    assert publish(catalog, [str(drop)], PublishOptions(attribution=("The tests",))).result == "published"
    with served(msgspec.structs.replace(settings, data_dir=str(data))) as worker:
        until(lambda: worker.ask(FILE, "HEAD").header("last-modified") is not None)
        taken_back = worker.ask(FILE)
        date, tag = taken_back.header("last-modified") or "", taken_back.header("etag") or ""
        roll_back(catalog)
        worker.wait_for(first)
        assert worker.ask(FILE, If_Modified_Since=date).status == 200
        for condition in ({"If_Unmodified_Since": date}, {"If_Match": tag}):
            assert problem(worker.ask(FILE, Range="bytes=4-9", **condition)) == (412, "precondition_failed")
        assert worker.ask(FILE, Range="bytes=4-9", If_Range=date).status == 200
        until(lambda: worker.ask(FILE, "HEAD").header("last-modified") not in (None, date))
        by_id = worker.ask(FILE.replace("current", first), "HEAD").header("last-modified") or ""
        assert (read_date(by_id.encode()) or 0) < (read_date(date.encode()) or 0)


def test_web_pages_follow_the_same_rule() -> None:
    page = static_file("page.html", b"<p>", b"default-src 'none'")
    tag = dict(page.reply([]).headers)[b"etag"]
    assert page.reply([(b"if-match", tag)]).status == 200
    assert page.reply([(b"if-none-match", tag)]).status == 304
    with pytest.raises(ApiError, match="precondition_failed"):
        page.reply([(b"if-match", b'"x"'), (b"if-none-match", tag)])


TAG, MODIFIED, SIZE = '"abc"', 1_700_000_000, 1000
WHEN = datetime.fromtimestamp(MODIFIED, UTC)
TAGS = st.sampled_from([TAG, f"W/{TAG}", '"other"', 'W/"other"', '""', '"ab,c"'])
LISTS = st.one_of(st.just("*"), st.lists(TAGS, max_size=3).map(", ".join))
SHIFTS = st.sampled_from([-86_400 * 365, -3600, -1, 0, 1, 3600, 86_400 * 365])


def written(shift: int, form: int) -> str:
    at = WHEN + timedelta(seconds=shift)
    forms = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y")
    return at.strftime(forms[form])


DATES = st.one_of(
    st.tuples(SHIFTS, st.integers(0, 2)).map(lambda drawn: (drawn[0], written(*drawn))),
    st.sampled_from(
        [
            "", "0", "yesterday", "Tue, 14 Nov 2023 22:13:20", "Tue, 14 Nov 2023 22:13:20 +0000",
            "Tue, 14 Nov 2023 22:13:20 PST", "Tue, 31 Feb 2023 22:13:20 GMT", "Tue, 14 Nov 2023 25:13:20 GMT",
            "2023-11-14T22:13:20Z", "9" * 200, "Tue, 14 Nov 99999 22:13:20 GMT", "Tue, 14 Nov 0000 22:13:20 GMT",
            f"{written(0, 0)},{written(0, 0)}", "\u00b2",
        ]
    ).map(lambda text: (None, text)),
)  # fmt: skip
RANGES = st.sampled_from(
    ["bytes=0-9", "bytes=990-", "bytes=-5", "bytes=1000-", "bytes=0-1,4-5", "rows=1-2", "bytes=9-2"]
)


def tags_of(text: str) -> list[str]:
    """A list of entity tags, read character by character, as the grammar has it."""
    found, at = [], 0
    while at < len(text):
        weak = text.startswith("W/", at)
        if weak or text[at] == '"':
            end = text.index('"', at + (3 if weak else 1)) + 1
            found.append(text[at:end])
            at = end
        else:
            at += 1
    return found


def expected(
    match: str | None,
    none_match: str | None,
    unmodified: tuple[int | None, str] | None,
    modified: tuple[int | None, str] | None,
    ranges: str | None,
    if_range: str | tuple[int | None, str] | None,
) -> int:
    """The status of a GET, by the steps of RFC 9110, 13.2.2."""
    if match is not None:  # 1
        if match != "*" and TAG not in tags_of(match):
            return 412
    elif unmodified is not None and unmodified[0] is not None and unmodified[0] < 0:  # 2
        return 412
    if none_match is not None:  # 3
        if none_match == "*" or TAG in [tag.removeprefix("W/") for tag in tags_of(none_match)]:
            return 304
    elif modified is not None and modified[0] is not None and modified[0] >= 0:  # 4
        return 304
    if ranges in (None, "bytes=0-1,4-5", "rows=1-2", "bytes=9-2"):
        return 200
    if if_range is not None and if_range != TAG and (isinstance(if_range, str) or if_range[0] != 0):  # 5
        return 200
    return 416 if ranges == "bytes=1000-" else 206


@given(
    st.none() | LISTS,
    st.none() | LISTS,
    st.none() | DATES,
    st.none() | DATES,
    st.none() | RANGES,
    st.none() | TAGS | DATES,
)
@example("*", None, (-1, written(-1, 0)), None, "bytes=0-9", None)
@example(None, "", None, (0, written(0, 0)), None, None)
def test_the_outcome_is_that_of_the_standard(
    match: str | None,
    none_match: str | None,
    unmodified: tuple[int | None, str] | None,
    modified: tuple[int | None, str] | None,
    ranges: str | None,
    if_range: str | tuple[int | None, str] | None,
) -> None:
    def sent(text: str | None) -> bytes | None:
        return text.encode("latin-1") if text is not None else None

    conditions = {
        b"if-match": sent(match),
        b"if-none-match": sent(none_match),
        b"if-unmodified-since": sent(unmodified[1] if unmodified else None),
        b"if-modified-since": sent(modified[1] if modified else None),
    }
    fields = [(b"range", ranges.encode())] if ranges is not None else []
    if if_range is not None:
        fields.append((b"if-range", (if_range if isinstance(if_range, str) else if_range[1]).encode("latin-1")))
    try:
        part = requested_part(fields, TAG.encode(), SIZE, MODIFIED)
        status = 200 if part is None else 206
        assert part is None or isinstance(part, Part)
    except Unsatisfiable:
        status = 416
    try:
        if is_unchanged(conditions, TAG.encode(), MODIFIED):
            status = 304
    except ApiError as error:
        status = CODES[error.code][0]
    assert status == expected(match, none_match, unmodified, modified, ranges, if_range)


@given(st.integers(-62_000_000_000, 250_000_000_000))
def test_a_date_means_the_second_that_it_names(second: int) -> None:
    assert read_date(formatdate(second, usegmt=True).encode()) == second


@given(st.binary(max_size=60))
def test_no_value_breaks_the_reading_of_a_date(value: bytes) -> None:
    assert read_date(value) is None or isinstance(read_date(value), int)

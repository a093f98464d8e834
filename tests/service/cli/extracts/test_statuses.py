"""forecast extracts statuses: which words mean which status."""

from tests.service.conftest import Cli
from warehouse.schema.vocabulary import PROJECT_STATUSES


def test_every_word_is_listed_with_what_it_means(cli: Cli) -> None:
    listed = cli("extracts", "statuses", "--json").json
    assert {word: status for status, words in listed.items() for word in words} == dict(PROJECT_STATUSES)
    assert next(iter(listed)) == "proposed"
    text = " ".join(cli("extracts", "statuses").out.split())
    assert "under_construction" in text
    assert "bp reinstated" in text

"""What sources' words mean."""

from typing import get_args

import pytest

from tests.warehouse.helpers import connect
from warehouse import sql
from warehouse.schema.vocabulary import PROJECT_STATUSES, ProjectStatus


def folded(word: str) -> str:
    row = connect().execute(f"SELECT {sql.statement('folded_text', value='$1')}", [word]).fetchone()
    assert row is not None
    return str(row[0])


def test_every_status_of_the_contract_can_be_said_and_no_other() -> None:
    """By its own name, too."""
    assert set(PROJECT_STATUSES.values()) == set(get_args(ProjectStatus))
    for status in get_args(ProjectStatus):
        assert PROJECT_STATUSES[folded(status)] == status


def test_every_word_is_written_as_it_is_looked_up() -> None:
    """A word that folding changes would never be found."""
    assert [word for word in PROJECT_STATUSES if folded(word) != word] == []


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("BP FILED", "proposed"),
        ("PL Filed", "proposed"),
        ("PL APPROVED", "approved"),
        ("BP Approved", "approved"),
        ("BP ISSUED", "permitted"),
        ("BP REINSTATED", "permitted"),
        ("CONSTRUCTION", "under_construction"),
        ("In progress", "under_construction"),
        ("Completed", "completed"),
        ("  on-hold ", "stalled"),
        ("Cancelled.", "withdrawn"),
        ("UNDER_CONSTRUCTION", "under_construction"),
    ],
)
def test_case_spaces_and_punctuation_do_not_matter(word: str, status: str) -> None:
    """The first nine are those of the real registers."""
    assert PROJECT_STATUSES[folded(word)] == status

"""The table of `forecast keys list` on terminals of several widths."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from service.base.terms import Quota, Rate, Terms
from service.cli.keys.show import keys_table
from service.keys.record import KeyView

VIEWS = [
    KeyView(
        key_id=f"0B1zQmX4kt{number:02}",
        partner="Long Name Partners",
        label=label,
        status="active",
        created_at=datetime(2026, 11, 1, tzinfo=UTC),
        not_before=None,
        expires_at=datetime(2027, 1, 31, 12, 30, tzinfo=UTC),
        suspended=None,
        revoked_at=None,
        plan=None,
        terms=Terms(areas=("forecast",), rate=Rate(500, 1, 100), quota=Quota(5_000_000, "month")),
        test=True,
        rotated_from=None,
        rotated_to=None,
        last_used=None,
    )
    for number, label in enumerate(("production", ""))
]


@pytest.mark.parametrize(("width", "lines"), [(160, 3), (80, None), (60, None)])
def test_ids_are_never_broken_and_a_wide_terminal_has_a_line_for_each_key(width: int, lines: int | None) -> None:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(keys_table(VIEWS, width))
    shown = captured.get().splitlines()
    assert max(len(line.rstrip()) for line in shown) <= width
    starts = [line.split()[0] for line in shown if line.startswith("0B1z")]
    assert starts == [view.key_id for view in VIEWS]
    if lines is not None:
        assert len(shown) == lines
        assert "2026-11-01" in shown[1]

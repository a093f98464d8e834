"""Pages of docs/ that come from the code. ``python -m tests.support.generated_pages`` writes them."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.generated_pages.columns import render_columns
from tests.support.generated_pages.commands import render_commands
from tests.support.generated_pages.operators import render_metrics_page, render_rules
from tests.support.generated_pages.partners import render_dictionary, render_llms
from tests.support.generated_pages.settings import render_settings
from tests.support.generated_pages.types import render_types
from tests.support.markdown import ROOT


def render_pages() -> Mapping[Path, str]:
    """Returns the text of each generated page, by its file."""
    return {
        **{ROOT / "docs/reference/cli" / name: text for name, text in render_commands().items()},
        ROOT / "docs/reference/columns.md": render_columns(),
        ROOT / "docs/reference/metrics.md": render_metrics_page(),
        ROOT / "docs/reference/rules.md": render_rules(),
        ROOT / "docs/reference/settings.md": render_settings(),
        ROOT / "docs/reference/types.md": render_types(),
        ROOT / "docs/partners/data-dictionary.md": render_dictionary(),
        ROOT / "docs/partners/llms.txt": render_llms(),
    }

"""Builds the documentation, and adds the libraries of browsers, when the package is built or installed."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackageFilesHook(BuildHookInterface[Any]):
    """The hook that hatchling calls before it builds."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, self.root)
        from config import browser_libraries, build_docs

        browser_libraries.bring_all([browser_libraries.CHARTS], root)
        if version != "editable" and not build_docs.build(root):  # config/setup.sh builds it for a checkout
            self.app.display_warning("the documentation is left out: its generator, zensical, is not installed")
        # git ignores them, but the package includes them
        build_data["artifacts"] += [f"{browser_libraries.CHARTS.place}/*", f"{build_docs.PLACE}/"]

"""Warns if the instances use another shared cache than the settings."""

from collections.abc import Iterable

from config.settings import Settings
from config.urls import address
from service.base.masking import masked
from service.cli.output import stderr
from service.publishing.warming import find_other_caches
from service.reports.text_table import plain
from warehouse.releases.instances import InstanceRecord


def other_caches(settings: Settings, instances: list[InstanceRecord]) -> list[str]:
    """Returns a warning for each of the `instances` that uses another cache than this command."""
    others = find_other_caches(address(settings.cache_url), instances)
    return [f"{one.name} uses another cache, {one.cache}: set FORECAST_CACHE_URL to the same URL" for one in others]


def warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        stderr().print(f"[yellow]warning[/] {plain(masked(sentence))}", soft_wrap=True)

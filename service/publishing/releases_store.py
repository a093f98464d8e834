"""The store of releases that `FORECAST_RELEASES_URL` names. Imports nothing that publishing needs."""

from config.settings import Settings, SettingsError
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

# An instance looks at the store twice a second, and opens a release of the whole country in about a second.
SERVED_WITHIN_SECONDS = 5.0


def open_store(settings: Settings) -> ReleasesStore:
    """Raises StoreError if the extra `releases` is missing, SettingsError if no store is set."""
    if settings.releases_url is None:
        raise SettingsError("FORECAST_RELEASES_URL is not set")
    return ReleasesStore(open_objects(settings.releases_url, settings.releases_options), settings.releases_url)

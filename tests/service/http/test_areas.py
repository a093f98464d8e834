"""The registry of data areas."""

from service.http.areas import AREAS


def test_names_and_paths_are_unique_and_versioned() -> None:
    assert len({area.name for area in AREAS}) == len({area.path for area in AREAS}) == len(AREAS)
    assert all(area.path.startswith("/v1/") and not area.path.endswith("/") for area in AREAS)

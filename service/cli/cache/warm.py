"""forecast cache warm"""

import os
import time

import click
import msgspec

from service.cache.warm import WarmError
from service.cli.cache.other_caches import warn
from service.cli.output import (
    data_folder_member,
    fail,
    json_option,
    load_settings,
    print_json,
    reports_errors,
    stderr,
    stdout,
    tell_data_folder,
)
from service.publishing.warming import warm_again
from service.reports import terminal
from warehouse.releases.catalog import Catalog

# Answers are compressed for seconds: on a busy machine, serving comes first.
_NICENESS = 10


class Done(msgspec.Struct, frozen=True):
    """What one run has done."""

    release: str
    answers: int
    seconds: float
    warnings: tuple[str, ...]


@click.command(name="warm")
@json_option
@reports_errors
def warm_cache(as_json: bool) -> None:
    """Put all answers of the current release into the cache.

    For a shared cache that was lost or emptied: partners are answered meanwhile, and those answers come from it again
    sooner. Publishing does this by itself. Running it twice does no harm. It gives way to whatever else runs on the
    machine, and Redis serves others between its batches.

    Exit codes: 0 done, 1 failed, or there is no release or no cache, 2 wrong usage, 130 interrupted.

    \b
    Examples:
      forecast cache warm
      forecast cache warm --json
    """
    settings = load_settings().settings
    catalog = Catalog(settings.data_path)
    manifest = catalog.current()
    os.nice(_NICENESS)
    started = time.monotonic()
    try:
        with terminal.progress(stderr()) as tell:
            warmed = warm_again(settings, catalog.folder(manifest.id), manifest, tell)
    except WarmError as error:
        fail(str(error), as_json=as_json)
    warnings = [f"{found.message}; {found.remedy}" if found.remedy else found.message for found in warmed.warnings]
    now = catalog.current().id
    if now != manifest.id:
        warnings.append(f"{now} became current meanwhile; publishing warmed it, unless a warning there says otherwise")
    done = Done(manifest.id, warmed.stored, round(time.monotonic() - started, 1), tuple(warnings))
    if as_json:
        print_json(msgspec.structs.asdict(done) | data_folder_member(settings))
    else:
        stdout().print(f"{done.answers:,} answers of release {done.release} are in the cache ({done.seconds:g} s).")
        tell_data_folder(settings)
    warn(warnings)

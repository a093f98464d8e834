"""forecast keys repair: repairs damaged files of the embedded key store."""

import click

from service.cli.output import Output, fail, load_settings, stdout, with_json
from service.embedded import repair as files
from service.embedded.disk import FILES
from service.embedded.owner import EmbeddedServers, embedded_roles

DAMAGED = 4


@click.command()
@click.option("--yes", is_flag=True, help="Repair the files. Default: only examine them.")
@with_json
def repair(yes: bool) -> Output:
    """Repair damaged files of the embedded key store.

    Shows the damage and the keys that lost changes. With --yes, all readable data is kept, and a copy of the original
    files stays beside them. Stop the instances on the data folder first.

    If the base file is lost, run `forecast keys import` with the newest backup before you start an instance. A key
    whose revocation is lost works again: check each key that is listed.

    Exit codes: 0 no damage, or repaired; 1 failed; 2 wrong usage; 4 damaged, and not repaired yet.

    \b
    Examples:
      forecast keys repair
      forecast keys repair --yes
    """
    settings = load_settings().settings
    folder = settings.data_path / "embedded" / "keys"
    if "keys" not in embedded_roles(settings):
        fail("FORECAST_KEYS_URL names a server: this command repairs only the embedded key store")
    if not (folder / FILES).exists():
        fail(f"{folder.absolute()} has no files of a key store: import a backup instead")
    servers = EmbeddedServers(settings.data_path, ("keys",))
    if not servers.claim():
        fail(f"an instance or a command uses {settings.data_path.absolute()}: stop it first")
    try:
        found = files.examine(folder)
        copy = str(files.repair(folder, found, servers.ensure)) if found.damage and yes else None
    finally:
        servers.stop()
    lost = sorted(found.lost_keys)
    members = {"damage": found.damage, "lost_keys": lost, "restore": found.restore}
    lines = (*found.damage, *(f"changes of key {key} are lost" for key in lost), _outcome(found, copy))
    return Output(
        {**members, "repaired": copy is not None, "copy": copy},
        lambda: stdout().print("\n".join(lines), markup=False, soft_wrap=True),
        code=DAMAGED if found.damage and not yes else 0,
    )


def _outcome(found: files.Findings, copy: str | None) -> str:
    then = "; then import the newest backup before you start an instance" if found.restore else ""
    if copy is not None:
        return f"Repaired{then}. The original files are in {copy}."
    return f"No changes were made. To repair, run this again with --yes{then}." if found.damage else "No damage found."

"""forecast serve"""

import logging
from functools import partial

import click

from service.base import logs
from service.base.sockets import StartError
from service.cli.output import fail, load_settings, print_json, wants_json, with_json
from service.instance.supervisor import serve as run_instance

log = logging.getLogger("forecast.serve")


@click.command()
@click.option("--host", "listen_host", help="Address of the partners' listener (FORECAST_LISTEN_HOST).")
@click.option(
    "--port", "listen_port", type=click.IntRange(0, 65535), help="Its port (FORECAST_LISTEN_PORT); 0 takes a free one."
)
@click.option("--operator-host", help="Address of the operators' listener (FORECAST_OPERATOR_HOST).")
@click.option(
    "--operator-port", type=click.IntRange(0, 65535), help="Its port (FORECAST_OPERATOR_PORT); 0 takes a free one."
)
@click.option("--workers", type=click.IntRange(1, 256), help="Worker processes. Default: one per processor.")
@partial(with_json, help_text="Log as JSON; print both base URLs as JSON once ready.")
def serve(**options: object) -> None:
    """Serve partners and operators until stopped.

    The partners' listener serves the API, the operators' listener health and metrics. By default, two embedded Valkey
    servers run beside the workers: one for keys, one for the cache. Releases go live without a restart.

    SIGTERM, SIGHUP, SIGQUIT and Ctrl-C let requests under way finish, for at most FORECAST_DRAIN seconds. A second
    SIGTERM, SIGQUIT or Ctrl-C stops at once. SIGUSR1 and SIGUSR2 are logged and ignored.

    Exit codes: 0 stopped, 1 failed to start, 2 wrong usage.

    \b
    Examples:
      forecast serve
      forecast serve --host 0.0.0.0 --port 8000 --workers 4
      FORECAST_KEYS_URL=redis://keys:6379 FORECAST_CACHE_URL=redis://cache:6379 forecast serve
    """
    settings = load_settings(options).settings
    log_json = logs.configure("json" if wants_json() else settings.log_format, settings.log_level)

    def ready(partners: str, operators: str) -> None:
        addresses = {"partners": partners, "operators": operators}
        log.info("partners: %s/v1/  operators: %s", partners, operators, extra=addresses)
        if wants_json():
            print_json(addresses)

    try:
        run_instance(settings, log_json=log_json, on_ready=ready)
    except StartError as error:
        fail(str(error))

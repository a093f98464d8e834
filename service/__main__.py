"""The program `forecast`. ``python -m service`` is the same, for when the script is not on the PATH."""

from config.processes import collect_seldom
from service.base import interruption


def run() -> None:
    interruption.arm()
    collect_seldom()
    try:
        from service.cli import main  # here, because Ctrl-C may come while it is imported

        main(prog_name="forecast")
    except SystemExit:
        raise
    except BaseException:
        if interruption.asked():
            interruption.end_interrupted()
        raise
    finally:
        try:
            interruption.disarm()
        except KeyboardInterrupt:  # in this very moment: the command has ended
            interruption.disarm()


if __name__ == "__main__":
    run()

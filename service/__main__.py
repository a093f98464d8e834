"""The program `forecast`; ``python -m service`` is the same, also where its script is not on the PATH."""

from service.base import interruption


def run() -> None:
    interruption.arm()
    try:
        from service.cli import main  # only now: importing it takes a while, in which Ctrl-C may come

        main(prog_name="forecast")
    except SystemExit:
        raise
    except BaseException:
        if interruption.asked():
            interruption.end_interrupted()
        raise
    finally:
        interruption.disarm()


if __name__ == "__main__":
    run()

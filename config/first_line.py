"""What an error says, in the one line that a log or a finding has for it."""


def first_line(error: BaseException) -> str:
    """The first line of what `error` says; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""The first line of an error's message, for a log or a finding."""


def first_line(error: BaseException) -> str:
    """Returns the first line of the error's message, or its type if the message is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

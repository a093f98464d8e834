"""How keys lie in the key store: one record each under ``k:{<id>}``, and the sentinel under ``k:control``."""

PREFIX = "k:"
CONTROL = "k:control"


def record_name(key_id: str) -> str:
    return f"{PREFIX}{{{key_id}}}"


def key_id_of(name: str) -> str | None:
    return name[3:-1] if name.startswith("k:{") and name.endswith("}") else None

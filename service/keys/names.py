"""The names of keys in the key store: ``k:{<id>}`` for the record of each, ``k:control`` for the identity."""

KEY_RECORD_PREFIX = "k:"
IDENTITY = "k:control"


def record_name(key_id: str) -> str:
    return f"{KEY_RECORD_PREFIX}{{{key_id}}}"


def key_id_of(name: str) -> str | None:
    return name[3:-1] if name.startswith("k:{") and name.endswith("}") else None

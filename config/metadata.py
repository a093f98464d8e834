"""The metadata of each setting: its name, variable, description and type, and whether it is a secret or a URL."""

from typing import Any

from msgspec import Meta

from config.settings import ENVIRONMENT_PREFIX, Settings
from config.urls import HIDDEN, mask_url


def names() -> tuple[str, ...]:
    """Returns the names of all settings, in the order of `Settings`."""
    return Settings.__struct_fields__


def variable_of(name: str) -> str:
    """Returns the environment variable of a setting."""
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def describe_setting(name: str) -> str:
    return _meta(name).description or ""


def is_secret(name: str) -> bool:
    return bool((_meta(name).extra or {}).get("secret"))


def is_url(name: str) -> bool:
    return bool((_meta(name).extra or {}).get("url"))


def type_of(name: str) -> Any:
    return Settings.__annotations__[name]


def masked_setting(name: str, value: object) -> object:
    """Returns `value` for display: secrets are hidden; for a URL, only its password and options."""
    if value is None or not is_secret(name):
        return value
    return mask_url(str(value)) if is_url(name) else HIDDEN


def _meta(name: str) -> Meta:
    meta: Meta = type_of(name).__metadata__[0]
    return meta

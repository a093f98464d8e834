"""Every setting is declared whole: described, valid by default, masked where it is secret."""

from typing import get_args

import msgspec
import pytest

from config.loading import load
from config.metadata import describe_setting, is_secret, is_url, masked_setting, names
from config.settings import Settings, TableName
from warehouse.schema.tables import TABLES

TOKENS = ("operator_read_token", "operator_write_token", "operator_keys_token")
SECRETS = {"keys_url", "cache_url", "keys_pepper", *TOKENS, "inbox_on_refusal"}


def test_every_setting_says_what_it_is() -> None:
    for name in names():
        assert describe_setting(name).endswith(".")
        assert len(describe_setting(name)) > 15


def test_every_default_is_within_its_own_bounds() -> None:
    settings = load({}).settings
    assert msgspec.convert(msgspec.to_builtins(settings), Settings) == settings


def test_what_is_secret_is_marked_so() -> None:
    assert {name for name in names() if is_secret(name)} == SECRETS
    assert {name for name in names() if is_url(name)} == {"keys_url", "cache_url"}


def test_a_secret_is_never_shown() -> None:
    assert masked_setting("keys_pepper", "hunter2hunter2hunter2") == "********"
    assert masked_setting("keys_url", "redis://u:hunter2@h:6379/0") == "redis://u:********@h:6379/0"
    assert masked_setting("inbox_on_refusal", "notify --token hunter2") == "********"
    assert masked_setting("keys_pepper", None) is None
    assert masked_setting("workers", 4) == 4


def test_settings_cannot_be_changed_once_read() -> None:
    with pytest.raises(AttributeError):
        load({}).settings.workers = 3  # type: ignore[misc]  # the very thing that must not work


def test_the_tables_that_a_setting_may_name_are_those_of_a_drop() -> None:
    assert get_args(TableName) == tuple(table.name for table in TABLES)

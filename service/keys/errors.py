"""Errors of the key store that the operator can do something about."""


class KeyStoreError(Exception):
    """The operator's command cannot be executed. The message is one line with the remedy."""


class NoSuchKeyError(KeyStoreError):
    """The store has no key with this id."""


class ForeignStoreError(KeyStoreError):
    """The store is not the one that our keys are in, or its identity is damaged (Decision 10)."""

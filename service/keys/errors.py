"""Errors of the key store that the operator can do something about."""


class KeyStoreError(Exception):
    """What the operator asked for cannot be done. The message is one line that says what to do."""


class NoSuchKeyError(KeyStoreError):
    """The store has no key with this id."""


class ForeignStoreError(KeyStoreError):
    """The store is not the one that our keys are in, or its identity is damaged (Decision 10)."""

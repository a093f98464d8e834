"""Errors of the key store."""

from service.redis.errors import StoreUnavailable


class KeyStoreError(Exception):
    """The operator's command cannot be executed. The message is one line with the remedy."""


class NoSuchKeyError(KeyStoreError):
    """The store has no key with this id."""


class NoSuchPlanError(KeyStoreError):
    """The store has no plan of this name."""


class NoSuchPartnerError(KeyStoreError):
    """The store has no limits of this partner."""


class BusyRecordError(KeyStoreError):
    """Other clients changed the record meanwhile. Nothing was changed: the same change can be tried again."""


class OtherRevisionError(KeyStoreError):
    """The record has another revision than the caller expects. Nothing was changed."""


class OtherRequestError(KeyStoreError):
    """Another request had the same Idempotency-Key."""


class LinkUsedError(KeyStoreError):
    """A link to a key shows nothing."""


class ForeignStoreError(KeyStoreError):
    """The store is not the one that our keys are in, or its identity is damaged (Decision 10)."""


class DamagedRecordError(StoreUnavailable):
    """A record is damaged: its content is unknown."""

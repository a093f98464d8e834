"""Adopting: an operator accepts the key store as it is, after a loss or a deliberate change of the pepper."""

import msgspec

from service.base.whoami import whoami
from service.keys import audit
from service.keys.audit import Change, Edit
from service.keys.errors import KeyStoreError
from service.keys.names import CONTROL
from service.keys.store import KeyStore, now


async def adopt(store: KeyStore) -> None:
    """Makes this store ours for every worker, whatever they knew before; keys of another pepper become void.

    Raises:
        KeyStoreError: if somebody else adopts it at the same moment.
        StoreUnavailable: if the store does not answer.
    """
    raw, control = await store.sentinel()
    decided = store.memory.decision(control)
    if control is None or control.pepper_fingerprint != store.fingerprint:
        control = msgspec.structs.replace(store.new_control(), adopted_at=now())
    adopted = msgspec.structs.replace(control, accepted_at=decided)
    change = Change(what="adopted", by=whoami())
    edits = [Edit(CONTROL, raw, msgspec.json.encode(adopted), change)]
    if not await audit.apply(store.redis, edits, replicas=store.replicas):
        raise KeyStoreError("somebody else has just adopted the key store; look again")
    store.memory.keep(adopted)

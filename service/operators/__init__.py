"""The operators' listener: health, metrics and state of the whole instance, revocations and roll-backs."""

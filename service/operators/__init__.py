"""The operators' listener: health and metrics of the whole instance; revocations, rollbacks, purges."""

"""Releases on disk: the catalog, rollback and retirement, and the instances that serve them."""

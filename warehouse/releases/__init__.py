"""Releases on disk: the catalog, the instances that use them, and their end."""

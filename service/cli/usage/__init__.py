"""`forecast usage`."""

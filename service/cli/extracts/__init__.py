"""`forecast extracts`: drops, releases, the inbox."""

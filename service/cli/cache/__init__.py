"""forecast cache: the shared cache, and what it has of one query."""

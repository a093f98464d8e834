"""Data areas, one module each: from tables to the entries that answer look-ups."""

"""Turns drops into releases and answers look-ups. Knows SQL and Parquet, but neither HTTP nor Redis."""

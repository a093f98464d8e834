"""Turns drops into releases and answers look-ups; knows SQL and Parquet, never HTTP, never Redis."""

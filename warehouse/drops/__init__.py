"""Drops: collected, recognised, staged and validated, in a process with limits."""

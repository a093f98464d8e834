"""Finds running instances for commands, and calls their operators' listeners."""

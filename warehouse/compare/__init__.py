"""Compares two releases, and checks changes against limits."""

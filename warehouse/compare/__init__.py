"""Compares two releases, and checks drift against limits."""

"""Releases as partners see them: which there are, what changed in them, and whole ones as files."""

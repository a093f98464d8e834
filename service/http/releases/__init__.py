"""Releases as partners see them: the list, their changes, and whole ones as files."""

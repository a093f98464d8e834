"""Findings and differences between releases, as text and as a page."""

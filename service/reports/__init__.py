"""Findings and differences between releases, as text and as an HTML page."""

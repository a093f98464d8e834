"""Watches a folder for drops; publishes, refuses or holds each. A held drop waits for a person's decision."""

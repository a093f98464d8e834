"""Watches a folder for drops: publishes each, or refuses it, or holds it until a person decides."""

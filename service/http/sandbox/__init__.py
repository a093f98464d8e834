"""The answers to test keys: a small fixed release, and requested errors. This package has no access to live data."""

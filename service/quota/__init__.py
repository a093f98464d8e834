"""Rates, quotas and usage of API keys."""

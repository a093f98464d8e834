"""The embedded Valkey servers."""

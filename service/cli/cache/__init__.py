"""forecast cache: commands for the caches."""

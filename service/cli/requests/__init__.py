"""forecast requests: commands for the access log."""

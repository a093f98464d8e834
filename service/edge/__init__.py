"""What happens before the router: limits, the key check, paths and methods."""

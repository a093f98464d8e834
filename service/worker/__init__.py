"""One serving process."""

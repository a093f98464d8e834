"""One release against another."""

"""Keys, plans and partners over HTTP, for sales."""

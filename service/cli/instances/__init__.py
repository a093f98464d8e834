"""Running instances as commands find and ask them."""

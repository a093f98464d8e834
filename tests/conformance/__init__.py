"""The partners' API as judges from outside see it, that were not made for it."""

"""Key sets: every ZIP code and city of a release, and how names are folded."""

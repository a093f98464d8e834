"""Key sets (every ZIP code and city of a release), and how city names are folded."""

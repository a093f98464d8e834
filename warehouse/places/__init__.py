"""Key sets (every ZIP code and city of a release), and the folding of city names."""

"""What may pass: how large a request may be, and what a key may do and how often."""

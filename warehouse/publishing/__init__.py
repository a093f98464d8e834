"""A drop becomes a release."""

"""Releases in object storage: an upstream of the data folders, which every instance mirrors."""

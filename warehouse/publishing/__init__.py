"""Makes a release from a drop."""

"""Encoded answers: their keys and envelopes, the shared cache, single flight, and the read-through over all of it."""

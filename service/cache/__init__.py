"""Encoded answers: their cache keys and envelopes, near and shared cache, single flight, and the read-through."""

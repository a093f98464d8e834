"""Admission: how large and how slow a request may be; what a key may ask for, and how often."""

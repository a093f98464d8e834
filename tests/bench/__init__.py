"""Requests per second beside a peer, in one run. Only the ratios travel from one machine to another."""

"""Connections with limits, deadlines and pipelining, whose plain requests the pipeline answers."""

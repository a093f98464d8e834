"""Answers partners and operators; knows HTTP and Redis, never SQL."""

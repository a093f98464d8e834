"""The direct answer: a hot request is answered before the router."""

"""How each peer is started, and what has to be installed for it; `contenders.py` says which there are.

=================  ==========================================================================================
``around.py``      what every peer is given: the service behind it, keys, answers, its filled-in configuration
``nginx.py``       nginx, with Lua and without
``caches.py``      Varnish, FastAPI, Litestar: caches that are filled by what is asked
``tables.py``      Bun and libh2o: answers and keys in tables that are filled before the first request
``queries.py``     ROAPI and flAPI: a query on each request
=================  ==========================================================================================
"""

"""`make bench-shapes`: this service beside nginx with Lua on every shape of traffic, each ratio beside its floor.

=================  ==========================================================================================
``catalog.py``     the shapes as data: what is asked, with which keys, over which connections, and the floors
``requests.py``    the requests of a shape, byte for byte
``checking.py``    before a shape counts: every answer has the right status, and the service's bytes
``measuring.py``   the rounds; ``crowds.py``: connections that are opened while the worker is saturated
``results.py``     what was found, with its ratios; ``report.py`` the tables, ``chart.py`` the picture
=================  ==========================================================================================
"""

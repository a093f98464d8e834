"""Figures of keys, rates and usage, measured on real instances: run by hand, one at a time, each as a module.

``python -m tests.figures.revocation``, ``.rates``, ``.million_keys``, ``.usage_run``; each says at its top what it
shows. They load the whole machine, so every figure is told with the load average beside it.
"""

"""Figures that documents quote, measured on real instances: run by hand, one at a time, each as a module.

``python -m tests.figures.revocation``, for one; each says at its top what it shows. They load the whole machine, so
every figure is reported with the load average beside it.
"""

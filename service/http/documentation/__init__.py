"""The documentation: sites of HTML pages that config/build_docs.py builds into this package."""

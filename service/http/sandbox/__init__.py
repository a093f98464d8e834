"""What test keys are answered from: a small fixed release, and errors on purpose. Nothing here knows live data."""

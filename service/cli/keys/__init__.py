"""`forecast keys`: issue, change, show, back up."""

"""What arrives: recognise, collect, stage and validate it, in a limited process."""

"""Sizes for people."""


def format_bytes(size: int) -> str:
    """Formats `size` in MB or GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"

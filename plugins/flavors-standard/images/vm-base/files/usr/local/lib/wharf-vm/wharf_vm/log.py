"""Lines for the container's log."""

import sys


def say(text):
    """Writes one line."""
    print(f"wharf-vm: {text}", file=sys.stderr, flush=True)


class Failure(Exception):
    """An error that ends a command; the text is for the operator."""

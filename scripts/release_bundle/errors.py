"""What is wrong with a release, in words for whoever makes or unpacks it."""


class ReleaseError(Exception):
    """A release that must not be made, or must not be trusted."""

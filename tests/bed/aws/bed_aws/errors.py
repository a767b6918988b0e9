"""AWS' errors, and those of the bed's own API."""


class AwsError(Exception):
    """AWS' answer in the place of a result."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class BedError(Exception):
    """A request to /bed/… that makes no sense: the tester's mistake, answered with 4xx."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status

"""The AWS CLI: each call is made here, and what it refuses becomes an error that says what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

from .step import Command, aws

# The code and the message, as versions 1 and 2 of the AWS CLI write them.
REFUSED = re.compile(r"An error occurred \((\w[\w.]*)\) when calling the (\w+) operation(?: \([^)]*\))?: (.*)", re.DOTALL)
NOT_SIGNED_IN = re.compile(
    r"ExpiredToken|RequestExpired|UnrecognizedClientException|InvalidClientTokenId|AuthFailure|Token has expired|"
    r"SSO session|Unable to locate credentials|NoCredentials|session .*expired",
    re.IGNORECASE,
)


class AwsError(Exception):
    """AWS, or the AWS CLI, has refused a call."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unusable(Exception):
    """The AWS CLI is not signed in, or not there: nothing more will work in this run."""


class Aws:
    def __init__(self, region: str | None = None) -> None:
        self._region = region

    def call(self, *arguments: str) -> Any:
        """The answer of an operation as JSON: `call("eks", "list-clusters")`. The CLI turns the pages."""
        return self.run(aws(*arguments))

    def run(self, command: Command) -> Any:
        where = ["--region", self._region] if self._region else []
        # Without it version 2 opens a pager at a terminal.
        environment = {**os.environ, "AWS_PAGER": ""}
        whole = ["aws", *command.arguments, *where, "--output", "json"]
        try:
            ran = subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise Unusable("the AWS CLI is not installed: there is no program aws") from None
        if ran.returncode:
            raise _refusal(ran.stderr.strip())
        return json.loads(ran.stdout) if ran.stdout.strip() else {}


def _refusal(said: str) -> AwsError | Unusable:
    if NOT_SIGNED_IN.search(said):
        return Unusable(f"the AWS CLI is not signed in: {said}\nSign in (aws sso login, for example) and run it again")
    found = REFUSED.search(said)
    return AwsError(found[1], f"{found[2]}: {found[3]}") if found else AwsError("", said or "the AWS CLI said nothing")

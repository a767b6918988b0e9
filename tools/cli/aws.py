"""The AWS CLI. A refused call becomes an error that says what to do."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from . import Failed, printable, process

# The code and the message, as versions 1 and 2 of the AWS CLI write them.
REFUSED = re.compile(r"An error occurred \((\w[\w.]*)\) when calling the (\w+) operation(?: \([^)]*\))?: (.*)", re.DOTALL)
NOT_SIGNED_IN = re.compile(
    r"ExpiredToken|RequestExpired|UnrecognizedClientException|InvalidClientTokenId|AuthFailure|Token has expired|"
    r"SSO session|Unable to locate credentials|NoCredentials|session .*expired",
    re.IGNORECASE,
)
# Timeout of the function.
FUNCTION_S = 900


class AwsError(Failed):
    """A call that AWS, or the AWS CLI, has refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(printable(message, 2000))
        self.code = code


class Unusable(Failed):
    """The AWS CLI is missing or not signed in: no call works in this run."""


class Aws:
    def __init__(self, region: str | None = None) -> None:
        self.region = region

    def call(self, *arguments: str) -> Any:
        """The answer of an operation as JSON: `call("eks", "list-clusters")`. The CLI turns the pages."""
        printed = self.text(*arguments, output="json")
        try:
            return json.loads(printed) if printed.strip() else {}
        except ValueError:
            raise AwsError("", f"aws {' '.join(arguments[:2])} printed no JSON: {printable(printed)}") from None

    def text(self, *arguments: str, output: str | None = None) -> str:
        where = ["--region", self.region] if self.region else []
        # Without it version 2 opens a pager at a terminal.
        environment = {**os.environ, "AWS_PAGER": ""}
        try:
            return process.run(["aws", *arguments, *where, *(["--output", output] if output else [])], environment=environment)
        except process.Refused as refused:
            raise _error(" ".join(arguments[:2]), refused.stderr) from None
        except Failed as missing:
            raise Unusable(str(missing)) from None

    def invoke(self, function: str, event: Any, *options: str) -> tuple[Any, Any]:
        """Invokes a function. Returns the answer of Lambda and that of the function."""
        with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
            payload, answer = Path(folder) / "event.json", Path(folder) / "answer.json"
            payload.write_text(json.dumps(event))
            # A file, because versions 1 and 2 of the CLI read the text of a payload differently.
            named = ("--function-name", function, "--payload", f"fileb://{payload}")
            accepted = self.call("lambda", "invoke", *named, f"--cli-read-timeout={FUNCTION_S}", *options, str(answer))
            text = answer.read_text() if answer.exists() else ""
            return accepted, json.loads(text) if text.strip() else None


def _error(operation: str, stderr: str) -> Failed:
    if NOT_SIGNED_IN.search(stderr):
        return Unusable(f"the AWS CLI is not signed in: {printable(stderr)}\nSign in (aws sso login, for example) and run it again")
    found = REFUSED.search(stderr)
    return AwsError(found[1], f"{found[2]}: {found[3]}") if found else AwsError("", f"aws {operation}: {stderr or 'no message'}")

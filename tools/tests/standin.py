"""Stands in for the AWS CLI: notes its calls, and answers from the file named by the operation; without one it is denied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from botocore.session import Session

# Options of the CLI itself, and commands that are no operations.
OF_THE_CLI = {"region", "output", "query", "clireadtimeout"}
COMMANDS_OF_THE_CLI = ("deploy", "update-kubeconfig", "get-token")
SPILLWAY = Path(__file__).parents[1] / "spillway"
AWS = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["lambda", "invoke"]:
    payload = sys.argv[sys.argv.index("--payload") + 1][len("fileb://"):]
    with open(here / "events", "a") as events:
        events.write(pathlib.Path(payload).read_text() + "\\n")
    function = here / "function"
    if function.exists():
        pathlib.Path(next(word for word in sys.argv if word.endswith("answer.json"))).write_text(function.read_text())
if sys.argv[2] == "update-kubeconfig":
    of = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    pathlib.Path(of["--kubeconfig"]).write_text(of["--name"])
    sys.exit()
answer = here / sys.argv[2]
if not answer.exists():
    sys.exit("An error occurred (AccessDenied) when calling the Some operation: \\x1b[31mno\\x1b[0m")
print(answer.read_text())
"""
OUTPUTS = {"RoleArn": "arn:role", "FunctionName": "spillway-Drain-1", "LogGroupName": "/aws/lambda/spillway", "FailureQueueUrl": "https://sqs/failures"}


class StandIn(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program("aws", AWS.format(python=sys.executable))

    def tearDown(self) -> None:
        """Every option is one of its operation's, as the AWS CLI derives them from the same models."""
        for service, operation, *words in self.calls():
            if operation in COMMANDS_OF_THE_CLI:
                continue
            model = Session().get_service_model(service)
            shape = model.operation_model("".join(word.title() for word in operation.split("-"))).input_shape
            known = {member.lower() for member in (shape.members if shape else ())}
            options = {word[2:].partition("=")[0].replace("-", "") for word in words if word.startswith("--")}
            self.assertLessEqual(options - OF_THE_CLI, known, operation)

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def spillway(self, *arguments: str, typed: str | None = None, path: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path if path is not None else f"{self.folder}:{os.environ['PATH']}", "TMPDIR": str(self.folder)}
        command = [sys.executable, str(SPILLWAY), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, input=typed or "", capture_output=True, text=True, check=False)

    def answers(self, operation: str, answer: object) -> None:
        (self.folder / operation).write_text(json.dumps(answer))

    def stack(self, **parameters: str) -> None:
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in OUTPUTS.items()]
        known = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
        arn = "arn:aws:cloudformation:eu-west-1:1:stack/spillway/1"
        self.answers("describe-stacks", {"Stacks": [{"StackId": arn, "Outputs": outputs, "Parameters": known}]})

    def calls(self, operation: str = "") -> list[list[str]]:
        noted = self.folder / "calls"
        calls = [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []
        return [call for call in calls if operation in ("", call[1])]

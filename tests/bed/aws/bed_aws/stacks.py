"""Stand-in for CloudFormation: DescribeStacks, GetTemplate, DeleteStack. What is in a stack is the bed's own (`stack.py`)."""

from datetime import UTC, datetime
from typing import Any

from bed_aws import stack
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.iam import Iam
from bed_aws.moto_side import Moto
from bed_aws.template import parsed


class Stacks:
    def __init__(self, whole: dict[str, Any], moto: Moto, iam: Iam) -> None:
        """`whole`: the template of which the bed makes its part of the stack."""
        self._whole = whole
        self._moto = moto
        self._iam = iam
        self._stacks: dict[str, tuple[dict[str, str], dict[str, str], str]] = {}
        self._is_made = True
        self.variables = stack.install(whole, moto)
        """Those of the function that refer to a part of its stack."""

    def put(self, name: str, outputs: dict[str, str], parameters: dict[str, str], text: str) -> None:
        """Deploys a stack. `text`: its template."""
        self._stacks[name] = (outputs, parameters, text)
        whole = parsed(text)
        if "RoleArns" in whole.get("Outputs", {}):
            stack.roles(whole, self._moto, name)
            self._iam.hand_in(whole, name)
        elif not self._is_made:
            self.variables = stack.install(self._whole, self._moto, parameters.get("RoleArns", ""))
            self._is_made = True

    def delete(self, name: str) -> None:
        """All that the stack has made. There may be no such stack."""
        _, _, text = self._stacks.pop(name, ({}, {}, "Resources: {}"))
        whole = parsed(text)
        if "RoleArns" in whole.get("Outputs", {}):
            stack.remove_roles(whole, self._moto, name)
            self._iam.hand_in(None)
        elif self._is_made:
            stack.remove(self._whole, self._moto)
            self._is_made = False

    def answer(self, call: Call) -> dict[str, Any] | None:
        name = call.asked.get("StackName", "")
        match call.action:
            case "DescribeStacks":
                return {"Stacks": [self._described(name)]}
            case "GetTemplate":
                return {"TemplateBody": self._stacks[name][2]}
            case "DeleteStack":
                self.delete(name)
                return {}
        return None

    def _described(self, name: str) -> dict[str, Any]:
        if name not in self._stacks:
            raise AwsError(400, "ValidationError", f"Stack with id {name} does not exist")
        outputs, parameters, _ = self._stacks[name]
        return {
            "StackId": self._moto.arn("cloudformation", f"stack/{name}/00000000-0000-0000-0000-000000000000"),
            "StackName": name,
            "CreationTime": datetime(2026, 11, 21, tzinfo=UTC),
            "EnableTerminationProtection": False,
            "StackStatus": "CREATE_COMPLETE",
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        }

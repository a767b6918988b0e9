"""The deployed stack: its role, its function, its queues, and the parameters that decide what a cluster needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import Failed
from .aws import Aws, AwsError


@dataclass(frozen=True)
class Stack:
    name: str
    region: str
    role: str
    function: str
    parameters: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    def output(self, name: str) -> str:
        if name not in self.outputs:
            raise Failed(f"the stack {self.name} has no output {name}: update it to this version")
        return self.outputs[name]

    @property
    def clusters(self) -> list[str]:
        """Clusters whose nodes are drained; none means all."""
        return _words(self.parameters.get("Clusters", ""))

    def serves(self, cluster: str) -> bool:
        return not self.clusters or cluster in self.clusters

    @property
    def completes_hooks(self) -> bool:
        """Returns `true` if DrainOn or CordonOn has `terminate`."""
        drain, cordon = (_words(self.parameters.get(name, default)) for name, default in (("DrainOn", "terminate"), ("CordonOn", "off")))
        return "terminate" in drain + cordon

    @property
    def is_dry_run(self) -> bool:
        return self.parameters.get("DryRun", "false") == "true"

    @property
    def managed_tag(self) -> tuple[str, str | None] | None:
        """Tag that an instance must have; without a value, any value will do."""
        key, equals, value = self.parameters.get("ManagedTag", "").partition("=")
        return (key, value if equals else None) if key else None

    @property
    def hooks(self) -> list[str]:
        return _words(self.parameters.get("Hooks", "")) or ["spillway"]

    @property
    def group_tag(self) -> tuple[str, str] | None:
        """Tag that a group needs for the function to complete its hooks."""
        key, equals, value = self.parameters.get("HookGroupTag", "").partition("=")
        return (key, value) if equals else None


def read(aws: Aws, name: str) -> Stack:
    try:
        (described,) = aws.call("cloudformation", "describe-stacks", "--stack-name", name)["Stacks"]
    except AwsError as error:
        if "does not exist" in str(error):
            raise Failed(f"there is no stack {name} in this Region: deploy it first, or name it with --stack, and its Region with --region") from None
        raise
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", [])}
    if not {"RoleArn", "FunctionName"} <= outputs.keys():
        raise Failed(f"the stack {name} has no outputs RoleArn and FunctionName: is it Spillway's? Has its deployment ended?")
    parameters = {one["ParameterKey"]: one.get("ParameterValue", "") for one in described.get("Parameters", [])}
    region = described["StackId"].split(":")[3]
    return Stack(name, region, outputs["RoleArn"], outputs["FunctionName"], parameters, outputs)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]

"""What the deployed stack says: the function's role and name, and the parameters that decide what a cluster needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from .aws import Aws, AwsError


class NoStack(Exception):
    """Without the stack nobody knows whom to let in."""


@dataclass(frozen=True)
class Stack:
    name: str
    region: str
    role: str
    function: str
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def clusters(self) -> list[str]:
        """Those whose nodes are acted on; none means all."""
        return _words(self.parameters.get("Clusters", ""))

    def serves(self, cluster: str) -> bool:
        return not self.clusters or cluster in self.clusters

    @property
    def completes_hooks(self) -> bool:
        """Whether a list of the stack has `terminate`, as the default of `DrainOn` does."""
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
        """What a group must have for the function to complete its hooks."""
        key, equals, value = self.parameters.get("HookGroupTag", "").partition("=")
        return (key, value) if equals else None


def read(aws: Aws, name: str) -> Stack:
    try:
        (described,) = aws.call("cloudformation", "describe-stacks", "--stack-name", name)["Stacks"]
    except AwsError as error:
        if "does not exist" in str(error):
            raise NoStack(
                f"there is no stack {name} in this Region: deploy it first, or name it with --stack, and its Region with --region"
            ) from None
        raise
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", [])}
    if not {"RoleArn", "FunctionName"} <= outputs.keys():
        raise NoStack(f"the stack {name} has no outputs RoleArn and FunctionName: is it Spillway's? Has its deployment ended?")
    parameters = {one["ParameterKey"]: one.get("ParameterValue", "") for one in described.get("Parameters", [])}
    region = described["StackId"].split(":")[3]
    return Stack(name, region, outputs["RoleArn"], outputs["FunctionName"], parameters)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]

"""An account for the tests: every call is held against AWS' own model, and so is what it answers.

What it answers is the least that lets a run come to its end. moto would do more, but knows a third of these calls.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.session
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "tests/smoke"), str(ROOT / "scripts")]
# Behind the others: it has a folder called tests, too.
sys.path.append(str(ROOT / "tests/bed/aws"))

from bed_aws.ruler import Ruler  # noqa: E402
from smoke.run import Run  # noqa: E402
from transform import transform  # noqa: E402

REGION, ACCOUNT = "eu-central-1", "111122223333"
INSTANCES = ("i-0aaaaaaaaaaaaaaaa", "i-0bbbbbbbbbbbbbbbb")
TEMPLATE = transform(ROOT / "template.yaml")
_session = botocore.session.get_session()

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def refused(operation: str, code: str, message: str = "told to") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def check(service: str, operation: str, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
    """Fails when AWS' model does not know the operation, or has the question or the answer otherwise."""
    model = _session.get_service_model(service).operation_model(operation)
    for value, shape, what in ((parameters, model.input_shape, "asks"), (answer, model.output_shape, "answers")):
        if shape is None:
            assert not value, f"{service} {operation} {what} nothing, here {value}"
            continue
        report = ParamValidator().validate(value, shape)
        assert not report.has_errors(), f"{service} {operation} {what}: {report.generate_report()}"
        unknown = set(value) - set(shape.members)
        assert not unknown, f"{service} {operation} {what}: no {unknown} in the model"


class Pretended:
    """`smoke.aws.Aws`, with stacks that are made at once and drains that succeed."""

    def __init__(self) -> None:
        self.region = REGION
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.stacks: set[str] = set()
        self.answers: dict[str, Answer] = {
            "CreateStack": self._create_stack,
            "CreateChangeSet": self._create_stack,
            "DeleteStack": self._delete_stack,
            "DescribeStacks": self._describe_stacks,
            "DescribeChangeSet": lambda _: {"Status": "CREATE_COMPLETE"},
            "GetTemplate": lambda _: {"TemplateBody": json.dumps(TEMPLATE)},
            "DescribeStackResource": lambda _: {"StackResourceDetail": RESOURCE},
            "DescribeSubnets": lambda _: {"Subnets": [{"SubnetId": "subnet-1", "VpcId": "vpc-1"}]},
            "DescribeSecurityGroups": lambda _: {"SecurityGroups": [{"GroupId": "sg-1"}]},
            "TestEventPattern": lambda asked: {"Result": matches(asked)},
            "ValidatePolicy": lambda _: {"findings": []},
            "StartQuery": lambda _: {"queryId": "q-1"},
            "GetQueryResults": lambda _: {"status": "Complete"},
            "FilterLogEvents": self._filter_log_events,
            "DescribeAutoScalingGroups": lambda _: {"AutoScalingGroups": [GROUP]},
            "DescribeInstances": self._describe_instances,
            "GetResources": lambda _: {"ResourceTagMappingList": []},
            "ListObjectsV2": self._list_objects,
            "ReceiveMessage": lambda _: {"Messages": [{"Body": json.dumps({"Message": "Drained: a node\nmore"})}]},
        }
        self._objects = [{"Key": "packaged.yaml"}]

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        self.calls.append((service, operation, parameters))
        answer = self.answers.get(operation, lambda _: {})(parameters)
        check(service, operation, parameters, answer)
        return answer

    def called(self, operation: str) -> list[dict[str, Any]]:
        return [parameters for _, name, parameters in self.calls if name == operation]

    def _create_stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.stacks.add(asked["StackName"])
        return {}

    def _delete_stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.stacks.discard(asked["StackName"])
        return {}

    def _describe_stacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["StackName"]
        if name not in self.stacks:
            raise refused("DescribeStacks", "ValidationError", f"Stack with id {name} does not exist")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in OUTPUTS.items()]
        stack = {"StackName": name, "StackStatus": "CREATE_COMPLETE", "CreationTime": 1, "Outputs": outputs}
        return {"Stacks": [stack]}

    def _filter_log_events(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["logGroupName"] == OUTPUTS["Recorder"]:
            return {"events": [{"message": (ROOT / "events/spot-interruption.json").read_text()}]}
        receipt = {"ending": "drained", "instance": INSTANCES[0], "hook": {"state": "completed"}}
        return {"events": [{"message": json.dumps(receipt)}]}

    def _describe_instances(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "InstanceIds" not in asked:
            return {"Reservations": []}
        return {
            "Reservations": [{"Instances": [{"InstanceId": asked["InstanceIds"][0], "State": {"Name": "terminated"}}]}]
        }

    def _list_objects(self, _: dict[str, Any]) -> dict[str, Any]:
        objects, self._objects = self._objects, []
        return {"Contents": objects} if objects else {}


class PretendedPrograms:
    """`smoke.programs.Programs`: notes what would be run. What `sam deploy` makes is a stack too."""

    def __init__(self, aws: Pretended) -> None:
        self.commands: list[tuple[str, ...]] = []
        self._aws = aws

    def run(self, folder: Path, *command: str, stdin: str | None = None) -> str:
        self.commands.append(command)
        if command[:2] == ("sam", "package"):
            Path(command[-1]).write_text("packaged")
        if command[:2] == ("sam", "deploy"):
            self._aws.stacks.add(command[command.index("--stack-name") + 1])
        return " ".join(f"aws:///eu-central-1a/{one}" for one in INSTANCES) if "nodes" in command else ""


def matches(asked: dict[str, Any]) -> bool:
    return Ruler({"the": json.loads(asked["EventPattern"])}).rules_for(json.loads(asked["Event"])) == ["the"]


def run_in(folder: Path) -> Run:
    """A run in this account, over the project's own files in place of an unpacked bundle's."""
    aws = Pretended()
    programs = PretendedPrograms(aws)
    return Run(aws, programs, ACCOUNT, "aws", ROOT, folder, say=lambda _: None, pause=0, template=TEMPLATE)


OUTPUTS = {
    "Cluster": "spillway-smoke-cluster",
    "Group": "nodes",
    "Topic": f"arn:aws:sns:{REGION}:{ACCOUNT}:messages",
    "Queue": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/messages",
    "Recorder": "/aws/events/spillway-smoke-cluster",
    "LogGroupName": "/aws/lambda/drain",
    "FunctionName": "drain",
    "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/drain",
}
GROUP = {
    **{"AutoScalingGroupName": "nodes", "MinSize": 2, "MaxSize": 4, "DesiredCapacity": 2, "DefaultCooldown": 300},
    **{"AvailabilityZones": [f"{REGION}a"], "HealthCheckType": "EC2", "CreatedTime": 1},
    "Instances": [
        {
            **{"InstanceId": one, "AvailabilityZone": f"{REGION}a", "LifecycleState": "InService"},
            **{"HealthStatus": "Healthy", "ProtectedFromScaleIn": False},
        }
        for one in INSTANCES
    ],
}
RESOURCE = {
    **{"LogicalResourceId": "Experiment", "PhysicalResourceId": "EXT1", "ResourceType": "AWS::FIS::ExperimentTemplate"},
    **{"LastUpdatedTimestamp": 1, "ResourceStatus": "CREATE_COMPLETE"},
}

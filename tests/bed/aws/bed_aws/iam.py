"""What the functions may do: each of their calls is judged by their roles' policies, as the template has them.

A right may hang on a setting, so a function's variables say which parameters its stack was deployed with.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.sts.models import AssumedRole

from bed_aws import stack
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.evaluator import Asked, Evaluator, Policies
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.rights import GroupTags, needed
from bed_aws.stack import FUNCTIONS, STACK

SCHEDULES_ROLE = "SchedulesRole"
# Who runs tools/spillway enroll; what that person may is in a file of its own.
ENROLLER = "Enroller"
ENROLLERS_ROLE = "spillway-enroller"
_ARNS = {
    "AWS::Events::Rule": "arn:aws:events:{region}:{account}:rule/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::Scheduler::ScheduleGroup": "arn:aws:scheduler:{region}:{account}:schedule-group/{name}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
    "AWS::Serverless::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
}
# How each protocol words it. SNS has a word of its own.
_DENIED = {
    "ec2": (403, "UnauthorizedOperation"),
    "json": (400, "AccessDeniedException"),
    "query": (403, "AccessDenied"),
    "rest-json": (403, "AccessDeniedException"),
    "sns": (403, "AuthorizationError"),
}


@dataclass(frozen=True)
class Deployed:
    """A function of a stack of its own, which has these parameters."""

    logical_id: str
    role: str
    name: str
    parameters: dict[str, str]


class Iam:
    def __init__(self, whole: dict[str, Any], moto: Moto, record: Path | None = None) -> None:
        """`whole`: the template. `record`: where what was asked for is written, a line each."""
        self._template = whole
        self._moto = moto
        self._evaluator = Evaluator(moto.account)
        self._deployed: dict[str, Deployed] = {}
        self._recorded: set[str] = set()
        self._record = record
        self._roles = (self._template, STACK)

    def hand_in(self, roles: dict[str, Any] | None, stack: str = STACK) -> None:
        """The roles are those of another template, of that stack; None: those of the stack itself."""
        self._roles = (roles or self._template, stack)

    def deploy(self, access_key_id: str, role: str, name: str, variables: dict[str, str]) -> None:
        """A function has been given credentials. Of a role that the template lacks nothing is judged."""
        logical_id, logical_role = FUNCTIONS.get(role, ("", ""))
        if role == ENROLLERS_ROLE:
            self._deployed[access_key_id] = Deployed(name, ENROLLER, name, {})
        if logical_role in self._template["Resources"]:
            parameters = parameters_of(self._template, logical_id, variables)
            self._deployed[access_key_id] = Deployed(logical_id, logical_role, name, parameters)

    def check(self, call: Call, caller: AssumedRole, tags: GroupTags) -> None:
        """Raises an AwsError, as AWS words it, if the caller's role does not allow a call. `tags`: those of a group."""
        deployed = self._deployed.get(call.access_key_id)
        if deployed is None:
            return
        function = f"arn:aws:lambda:{self._moto.region}:{self._moto.account}:function:{deployed.name}"
        seen = {"aws:RequestedRegion": call.region, "lambda:SourceFunctionArn": function}
        for asked in needed(call, self._moto, tags):
            asked = Asked(asked.action, asked.resource, {**seen, **asked.context})
            if not self._allows(deployed, deployed.role, asked):
                status, code = _DENIED[call.service if call.service in _DENIED else call.protocol]
                what = f"perform: {asked.action} on resource: {asked.resource}"
                why = f"because no identity-based policy allows the {asked.action} action"
                raise AwsError(status, code, f"User: {caller.arn} is not authorized to {what} {why}")

    def may_schedule(self, access_key_id: str, function: str) -> bool:
        """Whether Scheduler's role may invoke that function, in the stack of whoever made the schedule."""
        deployed = self._deployed.get(access_key_id)
        return deployed is None or self._allows(deployed, SCHEDULES_ROLE, Asked("lambda:InvokeFunction", function))

    def _allows(self, deployed: Deployed, role: str, asked: Asked) -> bool:
        read, stack = self._roles
        policies = policies_of(read, role, deployed, self._moto, stack)
        allowed = self._evaluator.allows(role, policies, asked)
        self._note(deployed, role, asked, allowed)
        return allowed

    def _note(self, deployed: Deployed, role: str, asked: Asked, allowed: bool) -> None:
        of = {"name": deployed.name, "role": role, "parameters": deployed.parameters, "allowed": allowed}
        line = json.dumps({**of, **vars(asked)}, sort_keys=True)
        if self._record and line not in self._recorded:
            self._recorded.add(line)
            with self._record.open("a") as file:
                file.write(line + "\n")


def parameters_of(read: dict[str, Any], function: str, variables: dict[str, str]) -> dict[str, str]:
    """The parameters that a function's variables come from, and the stack's name, where these differ from the defaults."""
    declared = read["Parameters"]
    environment = read["Resources"][function]["Properties"]["Environment"]["Variables"]
    found = {}
    for variable, source in environment.items():
        if isinstance(source, dict) and "Fn::Join" in source:
            source = source["Fn::Join"][1]
        name = source.get("Ref") if isinstance(source, dict) else None
        default = STACK if name == "AWS::StackName" else str(declared[name].get("Default", "")) if name in declared else None
        if default is not None and variables.get(variable, default) != default:
            found[name] = variables[variable]
    # The queue is there because somebody is to be notified, which is a parameter of the other function.
    if variables.get("SPILLWAY_ANNOUNCEMENTS"):
        found["TopicArn"] = "arn:aws:sns:us-east-1:123456789012:drains"
    return found


def policies_of(read: dict[str, Any], role: str, deployed: Deployed, moto: Moto, stack: str = STACK) -> Policies:
    """All policies of a role of a stack: its own, those that it shares, and those that are attached to it."""
    if role == ENROLLER:
        return enrollers_policies()
    resources = read["Resources"]
    known = names(resources, moto, {deployed.logical_id: deployed.name}, stack)
    known["AWS::StackName"] = deployed.parameters.get("AWS::StackName", STACK)
    intrinsics = Intrinsics(read, {**deployed.parameters, "StackName": known["AWS::StackName"]}, known)
    properties = resources[role]["Properties"]
    documents = [(one["PolicyName"], one["PolicyDocument"]) for one in intrinsics.value(properties.get("Policies", []))]
    for shared in properties.get("ManagedPolicyArns", []):
        documents.append((shared["Ref"], intrinsics.value(resources[shared["Ref"]]["Properties"]["PolicyDocument"])))
    for name, resource in resources.items():
        is_there = "Condition" not in resource or intrinsics.holds(resource["Condition"])
        if is_there and resource["Type"] == "AWS::IAM::RolePolicy" and resource["Properties"]["RoleName"] == {"Ref": role}:
            document = intrinsics.value(resource["Properties"]["PolicyDocument"])
            # As a text where a name in it, and not just a value, comes from a parameter.
            documents.append((name, json.loads(document) if isinstance(document, str) else document))
    return [{"name": name, "policy": document} for name, document in documents]


def enrollers_policies() -> Policies:
    file = Path(__file__).resolve().parents[4] / "deploy/iam/enroller-policy.json"
    return [{"name": file.stem, "policy": json.loads(file.read_text())}]


def names(resources: dict[str, Any], moto: Moto, own: dict[str, str], of: str = STACK) -> dict[str, str]:
    """What `Ref` and `GetAtt` of the resources come to, and of the stack; some have names of their own."""
    where = {"account": moto.account, "region": moto.region}
    known = {
        "AWS::AccountId": moto.account,
        "AWS::Partition": "aws",
        "AWS::Region": moto.region,
        "AWS::StackName": STACK,
        "AWS::URLSuffix": "amazonaws.com",
    }
    for logical_id, resource in resources.items():
        made = resource["Type"] in ("AWS::Scheduler::ScheduleGroup", "AWS::SQS::Queue")
        name = own.get(logical_id, stack.name(logical_id) if made else f"{of}-{logical_id}")
        known[logical_id] = name
        if arn := _ARNS.get(resource["Type"]):
            known[f"{logical_id}.Arn"] = arn.format(name=name, **where)
        # The rules that SAM makes of a function's events.
        for event in resource.get("Properties", {}).get("Events", {}):
            known[f"{logical_id}{event}.Arn"] = _ARNS["AWS::Events::Rule"].format(name=f"{STACK}-{logical_id}{event}", **where)
    return known


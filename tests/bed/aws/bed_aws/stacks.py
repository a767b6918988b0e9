"""Stand-in for CloudFormation: DescribeStacks, and the access entry of a template by the parameter that names its cluster. What
else is in a stack is the bed's own business (`stack.py`); moto's CloudFormation has no access entries.
"""

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws import template
from bed_aws.call import Call
from bed_aws.eks import Eks
from bed_aws.errors import AwsError
from bed_aws.moto_side import Moto

_XMLNS = "http://cloudformation.amazonaws.com/doc/2010-05-15/"
_DELETE = "Delete"


@dataclass(frozen=True)
class Made:
    """The access entry that a deployment has made, and what becomes of it when it is no longer in the template, or elsewhere."""

    cluster: str
    groups: tuple[str, ...]
    deletion: str
    replacement: str


class Stacks:
    def __init__(self, moto: Moto, eks: Eks) -> None:
        self._moto = moto
        self._eks = eks
        self._stacks: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        self._entries: dict[str, Made] = {}

    def put(self, name: str, outputs: dict[str, str], parameters: dict[str, str], text: str | None = None) -> None:
        """Deploys a stack. `text`: its template, whose access entry is made, left or taken away."""
        self._stacks[name] = (outputs, parameters)
        if text is not None:
            self._deploy(name, outputs["RoleArn"], _entry(template.parsed(text), parameters))

    def _deploy(self, name: str, role: str, wanted: Made | None) -> None:
        before = self._entries.pop(name, None)
        if before and (wanted is None or wanted.cluster != before.cluster):
            policy = before.deletion if wanted is None else before.replacement
            if policy == _DELETE:
                self._eks.delete(before.cluster, role)
            before = None
        if wanted:
            self._entries[name] = wanted
            if before is None:
                self._eks.create(wanted.cluster, role, list(wanted.groups), {})

    def answer(self, call: Call) -> Response | None:
        if call.action != "DescribeStacks":
            return None
        name = call.request.values.get("StackName", "")
        if name not in self._stacks:
            raise AwsError(400, "ValidationError", f"Stack with id {name} does not exist")
        outputs, parameters = self._stacks[name]
        arn = f"arn:aws:cloudformation:{self._moto.region}:{self._moto.account}:stack/{name}/00000000-0000-0000-0000-000000000000"
        text = (
            f'<DescribeStacksResponse xmlns="{_XMLNS}"><DescribeStacksResult><Stacks><member><StackId>{arn}</StackId>'
            f"<StackName>{escape(name)}</StackName><CreationTime>2026-11-21T00:00:00Z</CreationTime>"
            f"<StackStatus>CREATE_COMPLETE</StackStatus>{_members('Output', outputs)}{_members('Parameter', parameters)}"
            "</member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
        )
        return Response(text, mimetype="text/xml")


def _entry(read: dict[str, Any], parameters: dict[str, str]) -> Made | None:
    for resource in read["Resources"].values():
        if resource["Type"] == "AWS::EKS::AccessEntry":
            properties = resource["Properties"]
            cluster = parameters.get(properties["ClusterName"]["Ref"], "")
            policies = (resource.get("DeletionPolicy", _DELETE), resource.get("UpdateReplacePolicy", _DELETE))
            return Made(cluster, tuple(properties["KubernetesGroups"]), *policies) if cluster else None
    return None


def _members(kind: str, values: dict[str, str]) -> str:
    members = "".join(
        f"<member><{kind}Key>{escape(key)}</{kind}Key><{kind}Value>{escape(value)}</{kind}Value></member>"
        for key, value in values.items()
    )
    return f"<{kind}s>{members}</{kind}s>"

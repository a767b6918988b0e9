"""Stand-in for CloudFormation: DescribeStacks, GetTemplate, DeleteStack, and the access entry of a template by the parameter that
names its cluster. What else is in a stack is the bed's own business (`stack.py`, `rules.py`); moto's CloudFormation has no access entries.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws import rules, stack, template
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
    def __init__(self, moto: Moto, eks: Eks, path: Path | None = None) -> None:
        """`path`: the template of which the bed has made its part of the stack; None if it has made nothing."""
        self._moto = moto
        self._eks = eks
        self._path = path
        self._made = path is not None
        self._stacks: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        self._templates: dict[str, str] = {}
        self._entries: dict[str, Made] = {}

    def put(self, name: str, outputs: dict[str, str], parameters: dict[str, str], text: str | None = None) -> None:
        """Deploys a stack. `text`: its template, whose access entry is made, left or taken away."""
        self._stacks[name] = (outputs, parameters)
        if text is not None:
            self._templates[name] = text
            self._make()
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

    def _make(self) -> None:
        if self._path and not self._made:
            stack.install(self._path, self._moto)
            rules.put(rules.read(self._path), self._moto)
            self._made = True

    def delete(self, name: str) -> None:
        """All that the stack has made, but for what its template has CloudFormation keep. There may be no such stack."""
        outputs, _ = self._stacks.pop(name, ({}, {}))
        entry = self._entries.pop(name, None)
        if entry and entry.deletion == _DELETE:
            self._eks.delete(entry.cluster, outputs["RoleArn"])
        if self._path and self._made:
            stack.remove(self._path, self._moto)
            rules.remove(rules.read(self._path), self._moto)
            self._made = False

    def answer(self, call: Call) -> Response | None:
        name = call.request.values.get("StackName", "")
        match call.action:
            case "DescribeStacks":
                return self._describe(name)
            case "GetTemplate":
                text = f"<GetTemplateResult><TemplateBody>{escape(self._templates[name])}</TemplateBody></GetTemplateResult>"
                return _xml("GetTemplate", text)
            case "DeleteStack":
                self.delete(name)
                return _xml("DeleteStack", "")
        return None

    def _describe(self, name: str) -> Response:
        if name not in self._stacks:
            raise AwsError(400, "ValidationError", f"Stack with id {name} does not exist")
        outputs, parameters = self._stacks[name]
        arn = f"arn:aws:cloudformation:{self._moto.region}:{self._moto.account}:stack/{name}/00000000-0000-0000-0000-000000000000"
        text = (
            f"<DescribeStacksResult><Stacks><member><StackId>{arn}</StackId>"
            f"<StackName>{escape(name)}</StackName><CreationTime>2026-11-21T00:00:00Z</CreationTime>"
            "<EnableTerminationProtection>false</EnableTerminationProtection>"
            f"<StackStatus>CREATE_COMPLETE</StackStatus>{_members('Output', outputs)}{_members('Parameter', parameters)}"
            "</member></Stacks></DescribeStacksResult>"
        )
        return _xml("DescribeStacks", text)


def _xml(action: str, result: str) -> Response:
    return Response(f'<{action}Response xmlns="{_XMLNS}">{result}</{action}Response>', mimetype="text/xml")


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

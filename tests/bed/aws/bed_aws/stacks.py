"""Stand-in for CloudFormation: DescribeStacks, GetTemplate, DeleteStack. What is in a stack is the bed's own business (`stack.py`,
`rules.py`).
"""

from pathlib import Path
from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws import rules, stack
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.iam import Iam
from bed_aws.moto_side import Moto
from bed_aws.template import parsed

_XMLNS = "http://cloudformation.amazonaws.com/doc/2010-05-15/"


class Stacks:
    def __init__(self, moto: Moto, iam: Iam, variables: dict[str, str], path: Path | None = None) -> None:
        """`path`: the template of which the bed has made its part of the stack; None if it has made nothing."""
        self._moto = moto
        self._iam = iam
        self._path = path
        self._made = path is not None
        self.variables = variables
        """Those of the function that refer to a part of its stack."""
        self._stacks: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        self._templates: dict[str, str] = {}

    def put(self, name: str, outputs: dict[str, str], parameters: dict[str, str], text: str | None = None) -> None:
        """Deploys a stack. `text`: its template."""
        self._stacks[name] = (outputs, parameters)
        if text is not None:
            self._templates[name] = text
            if "RoleArns" in parsed(text).get("Outputs", {}):
                stack.roles(parsed(text), self._moto, name)
                self._iam.hand_in(parsed(text), name)
            else:
                self._make(parameters)

    def _make(self, parameters: dict[str, str]) -> None:
        if self._path and not self._made:
            self.variables = stack.install(self._path, self._moto, parameters)
            rules.put(rules.read(self._path), self._moto)
            self._made = True

    def delete(self, name: str) -> None:
        """All that the stack has made. There may be no such stack."""
        self._stacks.pop(name, None)
        whole = parsed(self._templates.pop(name, "Resources: {}"))
        if "RoleArns" in whole.get("Outputs", {}):
            stack.remove_roles(whole, self._moto, name)
            self._iam.hand_in(None)
        elif self._path and self._made:
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


def _members(kind: str, values: dict[str, str]) -> str:
    members = "".join(
        f"<member><{kind}Key>{escape(key)}</{kind}Key><{kind}Value>{escape(value)}</{kind}Value></member>"
        for key, value in values.items()
    )
    return f"<{kind}s>{members}</{kind}s>"

"""Stand-in for CloudFormation's DescribeStacks: a stack has the outputs and parameters that a test gives it. What is in it is
the bed's own business (`stack.py`), and moto's CloudFormation would make half of it again.
"""

from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.moto_side import Moto

_XMLNS = "http://cloudformation.amazonaws.com/doc/2010-05-15/"


class Stacks:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._stacks: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def put(self, name: str, outputs: dict[str, str], parameters: dict[str, str]) -> None:
        self._stacks[name] = (outputs, parameters)

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


def _members(kind: str, values: dict[str, str]) -> str:
    members = "".join(
        f"<member><{kind}Key>{escape(key)}</{kind}Key><{kind}Value>{escape(value)}</{kind}Value></member>"
        for key, value in values.items()
    )
    return f"<{kind}s>{members}</{kind}s>"


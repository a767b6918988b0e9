"""The event bus as whoever lists its rules sees it: the product's rules lead to the function that asks, and others may
have rules of their own.

In moto the product's rules lead to a function that is not there.
"""

import json
from typing import Any

from werkzeug import Response

from bed_aws import rules
from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto


class Bus:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def answer(self, call: Call) -> Response | None:
        function = self._function(call)
        match call.service, call.action:
            case "events", "ListTargetsByRule":
                asked = json.loads(call.request.get_data())
                targets, _ = self._moto.events.list_targets_by_rule(asked["Rule"], asked.get("EventBusName"))
                answer: dict[str, Any] = {"Targets": [_seen(one, function) for one in targets]}
            case _:
                return None
        return Response(json.dumps(answer), mimetype="application/x-amz-json-1.1")

    def put_rule(self, name: str, pattern: dict[str, Any], target: str) -> None:
        """Somebody else's rule."""
        self._moto.events.put_rule(name=name, event_pattern=json.dumps(pattern))
        self._moto.events.put_targets(name=name, event_bus_arn=None, targets=[{"Id": "1", "Arn": target}])

    def delete_rule(self, name: str) -> None:
        self._moto.events.remove_targets(name, None, ["1"])
        self._moto.events.delete_rule(name, None)

    def switch_rule(self, name: str, state: str) -> None:
        switch = self._moto.events.enable_rule if state == "ENABLED" else self._moto.events.disable_rule
        if not switch(name, None):
            raise BedError(f"no rule {name}", 404)

    def _function(self, call: Call) -> str:
        """Its session is named after it."""
        caller = self._moto.sts.get_assumed_role_from_access_key(call.access_key_id)
        return f"arn:aws:lambda:{self._moto.region}:{self._moto.account}:function:{caller.session_name}"


def _seen(target: dict[str, Any], function: str) -> dict[str, Any]:
    """As who asks sees it, whose function the product's rules lead to."""
    return {**target, "Arn": function if target["Arn"] == rules.TARGET else target["Arn"]}

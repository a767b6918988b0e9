"""A template's intrinsic functions, as far as the policies, dashboards and patterns of a template need them.

What only a deployment knows is made up, in the form that it will have.
"""

import re
from typing import Any

NOTHING = object()


class Resolver:
    """Resolves values of one template in one account and Region."""

    def __init__(self, template: dict[str, Any], account: str, region: str, partition: str, stack: str) -> None:
        self._resources: dict[str, Any] = template["Resources"]
        self._arn = f"arn:{partition}:{{service}}:{region}:{account}:{{name}}"
        self._known = {name: str(one.get("Default", "")) for name, one in template.get("Parameters", {}).items()} | {
            "AWS::AccountId": account,
            "AWS::Region": region,
            "AWS::Partition": partition,
            "AWS::StackName": stack,
            "AWS::StackId": f"arn:{partition}:cloudformation:{region}:{account}:stack/{stack}/00000000-0000-0000-0000-000000000000",
            "AWS::URLSuffix": "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
        }

    def of(self, value: Any) -> Any:
        """The value with every function replaced; what is `AWS::NoValue` is left out of its list or object."""
        if isinstance(value, list):
            return [one for one in map(self.of, value) if one is not NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._function(function, argument)
        return {key: one for key, one in ((key, self.of(one)) for key, one in value.items()) if one is not NOTHING}

    def _function(self, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return self._ref(argument)
            case "Fn::GetAtt":
                name, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
                return self._attribute(name, attribute)
            case "Fn::Sub":
                text, own = argument if isinstance(argument, list) else (argument, {})
                return re.sub(r"\$\{([^!}]+)\}", lambda found: self._named(found[1], own), text)
            case "Fn::If":
                # Whatever a setting may bring along is to be seen: of two branches, the one that is something.
                branches = [self.of(branch) for branch in argument[1:]]
                return next((one for one in branches if one not in (NOTHING, "", [])), branches[-1])
            case "Fn::Join":
                return argument[0].join(str(one) for one in self.of(argument[1]))
            case "Fn::Split":
                return str(self.of(argument[1])).split(argument[0])
            case "Fn::Select":
                return self.of(argument[1])[int(self.of(argument[0]))]
        raise NotImplementedError(f"{function} in a template")

    def _named(self, name: str, own: dict[str, Any]) -> str:
        if name in own:
            return str(self.of(own[name]))
        logical_id, dot, attribute = name.partition(".")
        return str(self._attribute(logical_id, attribute) if dot else self._ref(name))

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NOTHING
        if name in self._known:
            return self._known[name]
        match self._resources[name]["Type"]:
            case "AWS::SQS::Queue":
                return f"https://queue.example/{name}"
            case "AWS::IAM::ManagedPolicy" | "AWS::SNS::Topic":
                return self._attribute(name, "Arn")
        return name.lower()

    def _attribute(self, name: str, attribute: str) -> str:
        if not attribute.endswith("Arn"):
            return name.lower()
        service = self._resources[name]["Type"].split("::")[1].lower()
        form = {"lambda": f"function:{name}", "iam": f"role/{name}", "logs": f"log-group:{name}:*"}.get(service, name)
        arn = self._arn.format(service=service, name=form)
        # A role is of no Region.
        return re.sub(r"^(arn:[^:]+:iam):[^:]+:", r"\1::", arn)

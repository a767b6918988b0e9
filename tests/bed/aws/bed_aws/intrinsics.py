"""What CloudFormation makes of a template: its references, conditions and texts, for one choice of parameters."""

import re
from collections.abc import Mapping
from typing import Any

from bed_aws.template import TemplateError

_NAMED = re.compile(r"\$\{([^!}][^}]*)\}")
_NOTHING = object()


class Intrinsics:
    def __init__(self, template: dict[str, Any], parameters: Mapping[str, str], known: Mapping[str, str]) -> None:
        """`known`: what `Ref` and `GetAtt` of resources and of pseudo parameters come to, such as `Queue.Arn`."""
        self._conditions = template.get("Conditions", {})
        self._declared = template.get("Parameters", {})
        self._given = parameters
        self._known = known

    def value(self, of: Any) -> Any:
        """A value without functions. What is `AWS::NoValue` is left out of its list or object."""
        return None if (value := self._value(of)) is _NOTHING else value

    def holds(self, condition: Any) -> bool:
        """Whether a condition holds, by its name or as it stands."""
        if isinstance(condition, str):
            return self.holds(self._conditions[condition])
        ((function, of),) = condition.items()
        match function:
            case "Condition":
                return self.holds(of)
            case "Fn::Equals":
                one, other = (self.value(side) for side in of)
                return str(one) == str(other)
            case "Fn::Not":
                return not self.holds(of[0])
            case "Fn::And":
                return all(self.holds(one) for one in of)
            case "Fn::Or":
                return any(self.holds(one) for one in of)
            # These three only in a rule of the template.
            case "Fn::Contains":
                return self.value(of[1]) in self.value(of[0])
            case "Fn::EachMemberEquals":
                return all(member == self.value(of[1]) for member in self.value(of[0]))
            case "Fn::EachMemberIn":
                return set(self.value(of[0])) <= set(self.value(of[1]))
        raise TemplateError(f"the bed knows no condition {function}")

    def _value(self, of: Any) -> Any:
        if isinstance(of, list):
            return [value for one in of if (value := self._value(one)) is not _NOTHING]
        if not isinstance(of, dict):
            return of
        if len(of) == 1:
            ((function, argument),) = of.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._called(function, argument)
        return {name: value for name, inner in of.items() if (value := self._value(inner)) is not _NOTHING}

    def _called(self, function: str, of: Any) -> Any:
        match function:
            case "Ref":
                return self._named(of)
            case "Fn::GetAtt":
                return self._named(of if isinstance(of, str) else ".".join(of))
            case "Fn::Sub":
                text, own = of if isinstance(of, list) else (of, {})
                own = {name: str(self.value(value)) for name, value in own.items()}
                return _NAMED.sub(lambda found: own.get(found[1]) or str(self._named(found[1])), text)
            case "Fn::If":
                return self._value(of[1] if self.holds(of[0]) else of[2])
            case "Fn::Join":
                return of[0].join(str(one) for one in self._value(of[1]))
            case "Fn::Split":
                return self._value(of[1]).split(of[0])
            case "Fn::Select":
                values = self._value(of[1])
                if int(of[0]) >= len(values):
                    raise TemplateError(f"Fn::Select cannot select nonexistent value at index {of[0]}")
                return values[int(of[0])]
        raise TemplateError(f"the bed knows no function {function}")

    def _named(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NOTHING
        if name in self._declared:
            given = str(self._given.get(name, self._declared[name].get("Default", "")))
            return given.split(",") if self._declared[name]["Type"] == "CommaDelimitedList" else given
        if name in self._known:
            return self._known[name]
        raise TemplateError(f"the bed does not know what {name} comes to")

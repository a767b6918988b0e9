"""Who can make the function do what, by which right on everything: each step of an attack is judged by IAM's evaluator and by
the matcher of EventBridge's patterns, against the policies and rules of template.yaml. Writes the table of docs/threat-model.md.

    python tests/attacks/attacks.py [--write]
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bed_aws.evaluator import Asked, Evaluator, Policies
from bed_aws.iam import Deployed, enrollers_policies, names, policies_of
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from transform import transform  # noqa: E402

PAGE = ROOT / "docs/threat-model.md"
BEGIN, END = "<!-- attacks: written by tests/attacks/attacks.py -->", "<!-- end of attacks -->"
MOTO = Moto("123456789012", "us-east-1")
TEMPLATE = transform(ROOT / "template.yaml")
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
KNOWN = {**names(RESOURCES, MOTO, {}), "AWS::StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/1"}
SAMPLES = [json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))]
GUARD = json.loads((ROOT / "deploy/iam/guard-scp.json").read_text())
EVALUATOR = Evaluator(MOTO.account)

EVENTS, LAMBDA, SCHEDULER = (f"{service}.amazonaws.com" for service in ("events", "lambda", "scheduler"))
ANYBODY = f"arn:aws:iam::{MOTO.account}:role/developer"
FUNCTION, ANNOUNCEMENTS = KNOWN["Drain.Arn"], KNOWN["Announcements.Arn"]
WHERE = f"{MOTO.region}:{MOTO.account}"
THEIR_RULE = f"arn:aws:events:{WHERE}:rule/theirs"
SCHEDULE = f"arn:aws:scheduler:{WHERE}:schedule/{KNOWN['Schedules']}/theirs"
MAPPING = f"arn:aws:lambda:{WHERE}:event-source-mapping:theirs"
STACK = f"arn:aws:cloudformation:{WHERE}:stack/{KNOWN['AWS::StackName']}/1"
REMEMBERED = f"arn:aws:ssm:{WHERE}:parameter/spillway/{KNOWN['AWS::StackName']}/clusters/prod"
INSTANCE = f"arn:aws:ec2:{WHERE}:instance/i-1234567890abcdef0"
GROUP = f"arn:aws:autoscaling:{WHERE}:autoScalingGroup:0:autoScalingGroupName/workers"
# The parameters of the stack that is attacked: it has all that may be attacked.
PARAMETERS = {"TopicArn": f"arn:aws:sns:{WHERE}:drains"}
INTRINSICS = Intrinsics(TEMPLATE, PARAMETERS, KNOWN)

EVERYTHING = "everything"
MESSAGE = "a false message"
ALARM = "a false alarm"
MISSED = "notices are missed"
UNSEEN = "failures are not seen"
IGNORED = "notices are ignored"
SHORTER = "long drains end early"
REPLACED = "instances that AWS interrupts are replaced in that group"
TOKEN = "a token of the function goes to a cluster of theirs"
NOTHING = "nothing"


@dataclass(frozen=True)
class Stack:
    """The stack, and somebody in its account."""

    who: str
    policies: Policies
    permissions: tuple[str, ...] = ()
    """Rules that somebody has let invoke the function."""

    def may(self, action: str, resource: str, **context: Any) -> bool:
        """By their own policies and the resource's."""
        return EVALUATOR.reaches(self.who, self.policies, self.statements(resource), Asked(action, resource, context))

    def rule_reaches(self, rule: str) -> bool:
        return EVALUATOR.lets_in(EVENTS, self.statements(FUNCTION), Asked("lambda:InvokeFunction", FUNCTION, {"aws:SourceArn": rule}))

    def statements(self, resource: str) -> list[dict[str, Any]]:
        """The policy of the function, of a queue, or none."""
        if resource == FUNCTION:
            rules = (INTRINSICS.value(one["Properties"]["SourceArn"]) for one in of_type("AWS::Lambda::Permission").values())
            return [*map(_permission, rules), *map(_permission, self.permissions)]
        for policy in of_type("AWS::SQS::QueuePolicy").values():
            if resource.rpartition(":")[2] in INTRINSICS.value(policy["Properties"]["Queues"]):
                return INTRINSICS.value(policy["Properties"]["PolicyDocument"]["Statement"])
        return []

    def role_goes_to(self, role: str, service: str, **context: Any) -> bool:
        """Whether a service takes that role of the stack when it is handed over."""
        arn = KNOWN[f"{role}.Arn"]
        trust = INTRINSICS.value(RESOURCES[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"])
        handed = self.may("iam:PassRole", arn, **{"iam:PassedToService": service})
        return handed and EVALUATOR.lets_in(service, trust, Asked("sts:AssumeRole", arn, context))

    def follows_from(self, events: list[dict[str, Any]]) -> str:
        """What follows from these events on the bus."""
        rules = {rule for event in events for rule in _ruler().rules_for(event)}
        targets = {target for rule in rules for target in _targets(rule)}
        return EVERYTHING if FUNCTION in targets else MESSAGE if ANNOUNCEMENTS in targets else NOTHING


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: resource for name, resource in RESOURCES.items() if resource["Type"] == kind}


def _permission(rule: str) -> dict[str, Any]:
    """The statement that Lambda makes of one."""
    condition = {"ArnLike": {"aws:SourceArn": rule}}
    return {"Effect": "Allow", "Principal": {"Service": EVENTS}, "Action": "lambda:InvokeFunction", "Resource": FUNCTION, "Condition": condition}


@cache
def _ruler() -> Ruler:
    rules = {name: rule["Properties"] for name, rule in of_type("AWS::Events::Rule").items()}
    return Ruler({name: INTRINSICS.value(rule["EventPattern"]) for name, rule in rules.items() if "EventPattern" in rule})


def _targets(rule: str) -> Iterator[str]:
    for target in RESOURCES[rule]["Properties"]["Targets"]:
        yield KNOWN[".".join(target["Arn"]["Fn::GetAtt"])]


# What they try, each with what comes of it.


def puts_events(stack: Stack) -> str:
    """EventBridge takes any source that does not begin with `aws.`."""
    if not stack.may("events:PutEvents", f"arn:aws:events:{WHERE}:event-bus/default"):
        return NOTHING
    ours = {"source": "spillway", "detail-type": "Spillway Receipt", "account": MOTO.account, "detail": {"stack": KNOWN["AWS::StackName"]}}
    return stack.follows_from([ours, *({**event, "source": source} for event in _events() for source in ("spillway", "theirs"))])


def _events() -> list[dict[str, Any]]:
    """AWS' own, as the samples have them."""
    return [event for event in SAMPLES if "source" in event]


def replays(stack: Stack) -> str:
    if not stack.may("events:StartReplay", f"arn:aws:events:{WHERE}:replay/theirs"):
        return NOTHING
    return stack.follows_from([{**event, "replay-name": "theirs"} for event in _events()])


def forwards(stack: Stack) -> str:
    """A rule of another account leads its notices here; the bus has been opened to it."""
    return stack.follows_from([{**event, "account": "999999999999"} for event in _events()])


def changes_a_rule(stack: Stack) -> str:
    """It is given an input of theirs, or gets an event of theirs."""
    rules = [KNOWN[f"{name}.Arn"] for name in of_type("AWS::Events::Rule")]
    changed = [rule for rule in rules if stack.may("events:PutTargets", rule) or stack.may("events:PutRule", rule)]
    return EVERYTHING if any(map(stack.rule_reaches, changed)) else NOTHING


def makes_a_rule(stack: Stack) -> str:
    made = stack.may("events:PutRule", THEIR_RULE) and stack.may("events:PutTargets", THEIR_RULE)
    return EVERYTHING if made and stack.rule_reaches(THEIR_RULE) else NOTHING


def lets_a_rule_in(stack: Stack) -> str:
    permissions = (THEIR_RULE,) if stack.may("lambda:AddPermission", FUNCTION) else ()
    return makes_a_rule(replace(stack, permissions=permissions))


def plans(stack: Stack) -> str:
    if not stack.may("scheduler:CreateSchedule", SCHEDULE):
        return NOTHING
    return EVERYTHING if stack.role_goes_to("SchedulesRole", SCHEDULER, **_from(KNOWN["Schedules.Arn"])) else NOTHING


def plans_elsewhere(stack: Stack) -> str:
    """In a group of their own, which the role does not trust."""
    theirs = _from(f"arn:aws:scheduler:{WHERE}:schedule-group/theirs")
    return EVERYTHING if stack.role_goes_to("SchedulesRole", SCHEDULER, **theirs) else NOTHING


def _from(source: str) -> dict[str, str]:
    """What Scheduler says of a group, when it takes a role."""
    return {"aws:SourceAccount": MOTO.account, "aws:SourceArn": source}


def makes_a_function(stack: Stack) -> str:
    made = stack.may("lambda:CreateFunction", f"arn:aws:lambda:{WHERE}:function:theirs")
    return EVERYTHING if made and stack.role_goes_to("DrainRole", LAMBDA) else NOTHING


def takes_the_role(stack: Stack) -> str:
    """Or has it trust them first."""
    arn = KNOWN["DrainRole.Arn"]
    if stack.may("iam:UpdateAssumeRolePolicy", arn):
        return EVERYTHING
    trust = INTRINSICS.value(RESOURCES["DrainRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"])
    taken = EVALUATOR.reaches(stack.who, stack.policies, trust, Asked("sts:AssumeRole", arn))
    return EVERYTHING if taken else NOTHING


def makes_a_role(stack: Stack) -> str:
    """A role of a name that the sample excepts, with any policy, which trusts them."""
    results = set()
    for name in ("spillway-theirs", "OPERATORS", "DEPLOYERS"):
        arn = f"arn:aws:iam::{MOTO.account}:role/{name}"
        if all(stack.may(f"iam:{call}", arn) for call in ("CreateRole", "PutRolePolicy")):
            anything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
            theirs = {"name": "theirs", "policy": {"Version": "2012-10-17", "Statement": anything}}
            guard = [policy for policy in stack.policies if policy["name"] == "guard"]
            taken = replace(stack, who=arn, policies=[theirs, *guard])
            results |= {INVOKES(taken), calls("lambda:UpdateFunctionCode")(taken)}
    return EVERYTHING if EVERYTHING in results else NOTHING


def calls(*actions: str, to: str = EVERYTHING, of: str = FUNCTION, **context: Any) -> Callable[[Stack], str]:
    """One of these calls on a resource is enough."""
    return lambda stack: to if any(stack.may(action, of, **context) for action in actions) else NOTHING


def maps_a_queue(stack: Stack) -> str:
    """The function refuses records, and each refusal counts as an error."""
    created = stack.may("lambda:CreateEventSourceMapping", "*", **{"lambda:FunctionArn": FUNCTION})
    updated = stack.may("lambda:UpdateEventSourceMapping", MAPPING, **{"lambda:FunctionArn": FUNCTION})
    return ALARM if created or updated else NOTHING


def tags_for_replacement(stack: Stack) -> str:
    """EC2 has to confirm each interruption all the same."""
    seen = {"aws:TagKeys": ["spillway:replace"]}
    both = stack.may("autoscaling:CreateOrUpdateTags", GROUP, **seen) and stack.may("ec2:CreateTags", INSTANCE, **seen)
    return REPLACED if both else NOTHING


@dataclass(frozen=True)
class Attack:
    rights: tuple[str, ...]
    how: str
    tried: Callable[[Stack], str]


def attack(right: str, how: str, to: str = EVERYTHING, of: str = FUNCTION, **context: Any) -> Attack:
    """One call is enough."""
    return Attack((right,), how, calls(right, to=to, of=of, **context))


FAILURES, TLS = KNOWN["Failures.Arn"], {"aws:SecureTransport": "true"}
INVOKES = calls("lambda:InvokeFunction", "lambda:InvokeAsync")
SILENT = ("events:DisableRule", "events:DeleteRule", "events:RemoveTargets")
TAKEN = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:PurgeQueue")
CLOSED = ("sqs:SetQueueAttributes", "sqs:AddPermission", "sqs:RemovePermission", "sqs:DeleteQueue")
CHANGED = ("cloudformation:UpdateStack", "cloudformation:CreateChangeSet", "cloudformation:ExecuteChangeSet")
A_ROLE = ("iam:CreateRole", "iam:PutRolePolicy", "sts:AssumeRole")
MAPPED = ("lambda:CreateEventSourceMapping", "lambda:UpdateEventSourceMapping")
A_RULE, A_TAG = ("events:PutRule", "events:PutTargets"), ("autoscaling:CreateOrUpdateTags", "ec2:CreateTags")
KARPENTER = {"aws:TagKeys": ["karpenter.sh/nodepool"]}
ATTACKS = (
    Attack(("events:PutEvents",), "an event of another source on the bus", puts_events),
    Attack(("events:StartReplay",), "notices of an archive, once more", replays),
    Attack((), "another account sends its notices to this bus", forwards),
    Attack(A_RULE, "a rule of their own leads to the function", makes_a_rule),
    Attack(A_RULE, "a rule of the stack gets another input or pattern", changes_a_rule),
    Attack(SILENT, "a rule of the stack is switched off", calls(*SILENT, to=MISSED, of=KNOWN["DrainInterruption.Arn"])),
    Attack(("lambda:InvokeFunction",), "an invocation", INVOKES),
    Attack(("lambda:InvokeAsync",), "an invocation by the older call", INVOKES),
    Attack(("lambda:AddPermission", *A_RULE), "the function lets their rule in", lets_a_rule_in),
    attack("lambda:UpdateFunctionCode", "other code"),
    attack("lambda:UpdateFunctionConfiguration", "other settings"),
    attack("lambda:PutFunctionConcurrency", "no slot is left to it", MISSED),
    attack("lambda:PutFunctionRecursionConfig", "Lambda stops loops of it", SHORTER),
    Attack(MAPPED, "records of a queue of theirs", maps_a_queue),
    attack("lambda:DeleteFunction", "it is deleted", MISSED),
    Attack(("lambda:CreateFunction", "iam:PassRole"), "a function of their own gets its role", makes_a_function),
    Attack(("sts:AssumeRole",), "they take its role", takes_the_role),
    Attack(("iam:UpdateAssumeRolePolicy",), "its role trusts them", takes_the_role),
    Attack(A_ROLE, "a role with a name that `guard-scp.json` exempts", makes_a_role),
    Attack(CHANGED[::2], "another template for the stack, where it has a service role", calls(*CHANGED, of=STACK)),
    attack("cloudformation:DeleteStack", "the stack is deleted", MISSED, STACK),
    Attack(("scheduler:CreateSchedule", "iam:PassRole"), "a schedule in the stack's group", plans),
    Attack(("scheduler:CreateSchedule", "iam:PassRole"), "a schedule in another group", plans_elsewhere),
    Attack(("scheduler:CreateSchedule",), "a schedule without its role", plans),
    attack("scheduler:DeleteScheduleGroup", "the stack's schedules are deleted", MISSED, KNOWN["Schedules.Arn"]),
    attack("ssm:PutParameter", "another address of a cluster, for when EKS throttles", TOKEN, REMEMBERED),
    attack("sqs:SendMessage", "a message in the queue `Announcements`", MESSAGE, ANNOUNCEMENTS, **TLS),
    attack("sqs:SendMessage", "a message in the failure queue", ALARM, FAILURES, **TLS),
    Attack(TAKEN, "the failure queue is emptied", calls(*TAKEN, to=UNSEEN, of=FAILURES, **TLS)),
    Attack(CLOSED[::3], "the failure queue takes no more", calls(*CLOSED, to=UNSEEN, of=FAILURES, **TLS)),
    attack("ec2:CreateTags", "a tag that says Karpenter, on instances of no group", IGNORED, INSTANCE, **KARPENTER),
    Attack(A_TAG, "the tag of replacements on a group and its instances, where `Replace` is on", tags_for_replacement),
)


def somebody(rights: tuple[str, ...], guarded: bool = False) -> Stack:
    """Who has these rights on everything; and whether an organization has the sample policy."""
    statement = {"Effect": "Allow", "Action": list(rights) or ["s3:ListAllMyBuckets"], "Resource": "*"}
    policies = [{"name": "rights", "policy": {"Version": "2012-10-17", "Statement": [statement]}}]
    # It has nothing but Deny, which works the same in a policy of their own.
    return Stack(ANYBODY, [*policies, {"name": "guard", "policy": GUARD}] if guarded else policies)


def role(name: str) -> Stack:
    """Who has one of the stack's roles."""
    logical_id = "Announcer" if name == "AnnouncerRole" else "Drain"
    policies = policies_of(TEMPLATE, name, Deployed(logical_id, name, KNOWN[logical_id], PARAMETERS), MOTO)
    return Stack(KNOWN[f"{name}.Arn"], policies)


ENROLLER = Stack(f"arn:aws:iam::{MOTO.account}:role/enroller", enrollers_policies())
ROLES = {
    "the function's role": role("DrainRole"),
    "Scheduler's role": role("SchedulesRole"),
    "the announcer's role": role("AnnouncerRole"),
    "whoever enrols clusters": ENROLLER,
}


def worst(stack: Stack) -> str:
    """What comes of all attacks that somebody may make."""
    order = (EVERYTHING, TOKEN, MESSAGE, MISSED, IGNORED, UNSEEN, SHORTER, REPLACED, ALARM, NOTHING)
    results = {attack.tried(stack) for attack in ATTACKS if attack.rights}
    return next(result for result in order if result in results)


def table() -> str:
    head = ["| who has, on every resource | and tries | can make the function do |"]
    head.append("| --- | --- | --- |")
    lines = []
    for attack in ATTACKS:
        rights = ", ".join(f"`{right}`" for right in attack.rights) or "no right here"
        result, guarded = (attack.tried(somebody(attack.rights, guarded=guard)) for guard in (False, True))
        exception = "" if guarded == NOTHING else f"; with `guard-scp.json` {guarded}"
        lines.append(f"| {rights} | {attack.how} | {result}{exception} |")
    for name, stack in ROLES.items():
        lines.append(f"| {name} | all of these | {worst(stack)} |")
    return "\n".join([BEGIN, "", *head, *lines, "", END])


def main() -> int:
    before, rest = PAGE.read_text().split(BEGIN)
    if "--write" in sys.argv:
        PAGE.write_text(before + table() + rest.split(END)[1])
    else:
        print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())

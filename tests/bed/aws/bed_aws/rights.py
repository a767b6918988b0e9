"""Which rights an AWS call needs: actions, resources, and what IAM's conditions see of it."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from bed_aws.call import Call
from bed_aws.evaluator import Asked
from bed_aws.moto_side import Moto

# A group's tags by its name.
GroupTags = Callable[[str], Mapping[str, str]]

# AWS lets everybody ask who they are.
FREE = {("sts", "GetCallerIdentity")}
ON_NO_RESOURCE = {
    ("autoscaling", "DescribeAutoScalingGroups"),
    ("autoscaling", "DescribeAutoScalingInstances"),
    ("autoscaling", "DescribeLifecycleHooks"),
    ("autoscaling", "DescribeScalingActivities"),
    ("autoscaling", "DescribeTags"),
    ("ec2", "DescribeInstances"),
    ("ec2", "DescribeInstanceStatus"),
    ("ec2", "DescribeSpotInstanceRequests"),
    ("eks", "ListClusters"),
    ("elasticloadbalancing", "DescribeTags"),
    ("elasticloadbalancing", "DescribeTargetGroups"),
    ("elasticloadbalancing", "DescribeTargetHealth"),
    ("events", "ListRules"),
    ("lambda", "GetAccountSettings"),
    ("lambda", "ListEventSourceMappings"),
    ("scheduler", "ListSchedules"),
}


ON_A_GROUP = {
    ("autoscaling", "CompleteLifecycleAction"),
    ("autoscaling", "DeleteLifecycleHook"),
    ("autoscaling", "PutLifecycleHook"),
    ("autoscaling", "RecordLifecycleActionHeartbeat"),
    ("autoscaling", "TerminateInstanceInAutoScalingGroup"),
}


class NoSuchRight(Exception):
    """A call that nobody has said the rights of."""


def needed(call: Call, moto: Moto, tags: GroupTags) -> list[Asked]:
    """All that have to be there."""
    name = (call.service, call.action)
    if name in FREE:
        return []
    if name in ON_NO_RESOURCE:
        return [Asked(f"{call.service}:{call.action}", "*")]
    if name in ON_A_GROUP:
        return [_group(call, f"{moto.region}:{moto.account}", tags)]
    if name not in _ON_A_RESOURCE:
        raise NoSuchRight(f"tests/bed/aws/bed_aws/rights.py does not say which right {call.service}:{call.action} needs")
    return _ON_A_RESOURCE[name](call, f"{moto.region}:{moto.account}")


def _group(call: Call, where: str, tags: GroupTags) -> Asked:
    # A call that names an instance alone is on its group.
    group = call.request.values.get("AutoScalingGroupName") or call.request.values["InstanceId"]
    # AWS' own part of the ARN is not known by the name.
    own = "00000000-0000-0000-0000-000000000000"
    arn = f"arn:aws:autoscaling:{where}:autoScalingGroup:{own}:autoScalingGroupName/{group}"
    seen = {f"aws:ResourceTag/{key}": value for key, value in tags(group).items()}
    return Asked(f"autoscaling:{call.action}", arn, seen)


def _cluster(call: Call, where: str) -> list[Asked]:
    return [Asked("eks:DescribeCluster", f"arn:aws:eks:{where}:cluster/{_last_part(call)}")]


def _stack(call: Call, where: str) -> list[Asked]:
    return [Asked("cloudformation:DescribeStacks", f"arn:aws:cloudformation:{where}:stack/{call.request.values['StackName']}/0")]


def _new_entry(call: Call, where: str) -> list[Asked]:
    asked = _body(call)
    seen = {
        "eks:principalArn": asked["principalArn"],
        "eks:kubernetesGroups": asked.get("kubernetesGroups", []),
        "eks:accessEntryType": asked.get("type", "STANDARD"),
        **({"eks:username": asked["username"]} if "username" in asked else {}),
    }
    cluster = unquote(call.request.path.split("/")[2])
    create = Asked("eks:CreateAccessEntry", f"arn:aws:eks:{where}:cluster/{cluster}", seen)
    tag = Asked("eks:TagResource", _entry_arn(cluster, asked["principalArn"], where))
    return [create, *([tag] if asked.get("tags") else [])]


def _entry(call: Call, where: str) -> list[Asked]:
    _, cluster, _, principal = unquote(call.request.path).strip("/").split("/", 3)
    return [Asked(f"eks:{call.action}", _entry_arn(cluster, principal, where))]


def _entry_arn(cluster: str, principal: str, where: str) -> str:
    role = f"{principal.split(':')[4]}/{principal.rpartition('/')[2]}"
    return f"arn:aws:eks:{where}:access-entry/{cluster}/role/{role}/00000000-0000-0000-0000-000000000000"


def _tagged(call: Call, where: str) -> list[Asked]:
    return [Asked("eks:TagResource", unquote(call.request.path.removeprefix("/tags/")))]


def _tagged_groups(call: Call, where: str) -> list[Asked]:
    def of_each_tag(member: str) -> list[str]:
        return sorted({value for key, value in call.request.values.items() if key.endswith(f".{member}")})

    own, seen = "00000000-0000-0000-0000-000000000000", {"aws:TagKeys": of_each_tag("Key")}
    groups = [f"arn:aws:autoscaling:{where}:autoScalingGroup:{own}:autoScalingGroupName/{name}" for name in of_each_tag("ResourceId")]
    return [Asked(f"autoscaling:{call.action}", group, seen) for group in groups]


def _targets(call: Call, where: str) -> list[Asked]:
    return [Asked("events:ListTargetsByRule", f"arn:aws:events:{where}:rule/{_body(call)['Rule']}")]


def _events(call: Call, where: str) -> list[Asked]:
    entries = _body(call)["Entries"]
    buses = {entry.get("EventBusName", "default") for entry in entries}
    context = {
        key: [entry[member] for entry in entries if member in entry]
        for key, member in (("events:source", "Source"), ("events:detail-type", "DetailType"))
    }
    return [Asked("events:PutEvents", f"arn:aws:events:{where}:event-bus/{bus}", context) for bus in sorted(buses)]


def _function(call: Call, where: str) -> list[Asked]:
    name = unquote(call.request.path.split("/")[3])
    action = "InvokeFunction" if call.action == "Invoke" else call.action
    return [Asked(f"lambda:{action}", f"arn:aws:lambda:{where}:function:{name}")]


def _schedule(call: Call, where: str) -> list[Asked]:
    body = _body(call)
    group = body.get("GroupName") or call.request.args.get("groupName", "default")
    asked = [Asked(f"scheduler:{call.action}", f"arn:aws:scheduler:{where}:schedule/{group}/{_last_part(call)}")]
    if role := body.get("Target", {}).get("RoleArn"):
        asked.append(Asked("iam:PassRole", role, {"iam:PassedToService": "scheduler.amazonaws.com"}))
    return asked


def _queue(call: Call, where: str) -> list[Asked]:
    return [Asked(f"sqs:{call.action}", f"arn:aws:sqs:{where}:{_body(call)['QueueUrl'].rpartition('/')[2]}")]


def _topic(call: Call, where: str) -> list[Asked]:
    return [Asked("sns:Publish", call.request.values["TopicArn"])]


def _parameter(call: Call, where: str) -> list[Asked]:
    body = _body(call)
    names = body["Names"] if call.action == "GetParameters" else [body["Name"]]
    return [Asked(f"ssm:{call.action}", f"arn:aws:ssm:{where}:parameter/{name.lstrip('/')}") for name in names]


def _secret(call: Call, where: str) -> list[Asked]:
    return [Asked("secretsmanager:GetSecretValue", _body(call)["SecretId"])]


_ON_A_RESOURCE: dict[tuple[str, str], Callable[[Call, str], list[Asked]]] = {
    ("autoscaling", "CreateOrUpdateTags"): _tagged_groups,
    ("autoscaling", "DeleteTags"): _tagged_groups,
    ("cloudformation", "DescribeStacks"): _stack,
    ("eks", "CreateAccessEntry"): _new_entry,
    ("eks", "DeleteAccessEntry"): _entry,
    ("eks", "DescribeAccessEntry"): _entry,
    ("eks", "DescribeCluster"): _cluster,
    ("eks", "TagResource"): _tagged,
    ("eks", "UpdateAccessEntry"): _entry,
    ("events", "ListTargetsByRule"): _targets,
    ("events", "PutEvents"): _events,
    ("lambda", "Invoke"): _function,
    ("scheduler", "CreateSchedule"): _schedule,
    ("scheduler", "DeleteSchedule"): _schedule,
    ("scheduler", "GetSchedule"): _schedule,
    ("scheduler", "UpdateSchedule"): _schedule,
    ("secretsmanager", "GetSecretValue"): _secret,
    ("sns", "Publish"): _topic,
    ("sqs", "SendMessage"): _queue,
    ("ssm", "DeleteParameter"): _parameter,
    ("ssm", "GetParameter"): _parameter,
    ("ssm", "GetParameters"): _parameter,
    ("ssm", "PutParameter"): _parameter,
}


def _last_part(call: Call) -> str:
    return unquote(call.request.path.rpartition("/")[2])


def _body(call: Call) -> dict[str, Any]:
    return json.loads(call.request.get_data() or b"{}")

"""Which rights an AWS call needs: actions, resources, and what IAM's conditions see of it."""

from collections.abc import Callable, Mapping

from bed_aws.call import Call
from bed_aws.evaluator import Asked
from bed_aws.moto_side import Moto

# A group's tags by its name.
GroupTags = Callable[[str], Mapping[str, str]]

# AWS' own part of an ARN, which is not known by the name.
OWN = "00000000-0000-0000-0000-000000000000"


def needed(call: Call, moto: Moto, tags: GroupTags) -> list[Asked]:
    """All that have to be there. A call that is not named here needs its right on all resources."""
    asked, where = call.asked, f"{moto.region}:{moto.account}"
    action = f"{call.service}:{call.action}"

    def group(name: str) -> str:
        return f"arn:aws:autoscaling:{where}:autoScalingGroup:{OWN}:autoScalingGroupName/{name}"

    def entry(principal: str) -> str:
        role = f"{principal.split(':')[4]}/{principal.rpartition('/')[2]}"
        return f"arn:aws:eks:{where}:access-entry/{asked['clusterName']}/role/{role}/{OWN}"

    match call.service, call.action:
        # AWS lets everybody ask who they are.
        case "sts", "GetCallerIdentity":
            return []
        case "autoscaling", "CreateOrUpdateTags" | "DeleteTags":
            seen = {"aws:TagKeys": sorted({tag["Key"] for tag in asked["Tags"]})}
            return [Asked(action, group(name), seen) for name in sorted({tag["ResourceId"] for tag in asked["Tags"]})]
        case "autoscaling", (
            "CompleteLifecycleAction"
            | "DeleteLifecycleHook"
            | "PutLifecycleHook"
            | "RecordLifecycleActionHeartbeat"
            | "TerminateInstanceInAutoScalingGroup"
        ):
            # A call that names an instance alone is on its group.
            name = asked.get("AutoScalingGroupName") or asked["InstanceId"]
            return [Asked(action, group(name), {f"aws:ResourceTag/{key}": value for key, value in tags(name).items()})]
        case "cloudformation", "DescribeStacks":
            return [Asked(action, f"arn:aws:cloudformation:{where}:stack/{asked['StackName']}/0")]
        case "eks", "CreateAccessEntry":
            seen = {
                "eks:principalArn": asked["principalArn"],
                "eks:kubernetesGroups": asked.get("kubernetesGroups", []),
                "eks:accessEntryType": asked.get("type", "STANDARD"),
                **({"eks:username": asked["username"]} if "username" in asked else {}),
            }
            tagged = [Asked("eks:TagResource", entry(asked["principalArn"]))] if asked.get("tags") else []
            return [Asked(action, f"arn:aws:eks:{where}:cluster/{asked['clusterName']}", seen), *tagged]
        case "eks", "DeleteAccessEntry" | "DescribeAccessEntry" | "UpdateAccessEntry":
            return [Asked(action, entry(asked["principalArn"]))]
        case "eks", "DescribeCluster":
            return [Asked(action, f"arn:aws:eks:{where}:cluster/{asked['name']}")]
        case "eks", "TagResource":
            return [Asked(action, asked["resourceArn"])]
        case "events", "ListTargetsByRule":
            return [Asked(action, f"arn:aws:events:{where}:rule/{asked['Rule']}")]
        case "events", "PutEvents":
            seen = {
                key: [one[member] for one in asked["Entries"] if member in one]
                for key, member in (("events:source", "Source"), ("events:detail-type", "DetailType"))
            }
            buses = {one.get("EventBusName", "default") for one in asked["Entries"]}
            return [Asked(action, f"arn:aws:events:{where}:event-bus/{bus}", seen) for bus in sorted(buses)]
        case "lambda", "Invoke":
            return [Asked("lambda:InvokeFunction", f"arn:aws:lambda:{where}:function:{asked['FunctionName']}")]
        case "scheduler", "CreateSchedule" | "DeleteSchedule" | "GetSchedule" | "UpdateSchedule":
            schedule = f"arn:aws:scheduler:{where}:schedule/{asked.get('GroupName', 'default')}/{asked['Name']}"
            roles = [asked["Target"]["RoleArn"]] if "Target" in asked else []
            seen = {"iam:PassedToService": "scheduler.amazonaws.com"}
            return [Asked(action, schedule), *(Asked("iam:PassRole", role, seen) for role in roles)]
        case "secretsmanager", "GetSecretValue":
            return [Asked(action, asked["SecretId"])]
        case "sns", "Publish":
            return [Asked(action, asked["TopicArn"])]
        case "sqs", "SendMessage":
            return [Asked(action, f"arn:aws:sqs:{where}:{asked['QueueUrl'].rpartition('/')[2]}")]
        case "ssm", "DeleteParameter" | "GetParameter" | "GetParameters" | "PutParameter":
            names = asked["Names"] if call.action == "GetParameters" else [asked["Name"]]
            return [Asked(action, f"arn:aws:ssm:{where}:parameter/{name.lstrip('/')}") for name in names]
    return [Asked(action, "*")]

"""Stage B: the release in a cluster of its own, with four real notices."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from smoke import receipts
from smoke.aws import wait
from smoke.run import TAG, Run
from smoke.step import SmokeError, Step
from smoke.teardown import CLUSTER, DRILL, SPILLWAY

HERE = Path(__file__).parent
PODS = HERE / "pods.yaml"
# So long before a maintenance its node is drained; the sample's comes a little later, by a schedule.
LEAD_S, AHEAD_S = 60, 240


def steps() -> list[Step[Run]]:
    return [
        Step(
            "cluster",
            "makes a cluster with two spot nodes, a topic, a queue and a recorder",
            cluster,
            minutes=22,
            usd=0.15,
        ),
        Step("deploy", "has sam deploy the release", deploy, minutes=4),
        Step(
            "enrol", "lets the function into the cluster, puts a hook on the group, deploys ten pods", enrol, minutes=2
        ),
        Step("doctor", "asks the doctor, who must find no failure", doctor),
        Step(
            "terminate hook",
            "ends an instance: its node is drained and its hook completed",
            terminate,
            minutes=6,
            usd=0.01,
        ),
        Step(
            "interruption",
            "has FIS interrupt a spot instance: its node is drained in time",
            interrupt,
            minutes=8,
            usd=0.25,
        ),
        Step("maintenance", "sends a maintenance for in four minutes: a schedule has it drained", maintain, minutes=7),
        Step("message", "fetches the messages about all that from the queue", message),
        Step("teardown", "takes all of it away", lambda _: None, minutes=15, usd=0.03),
    ]


def cluster(run: Run) -> None:
    body = (HERE / "cluster.yaml").read_text()
    run.aws.call(
        "cloudformation",
        "CreateStack",
        StackName=CLUSTER,
        TemplateBody=body,
        Capabilities=["CAPABILITY_IAM"],
        OnFailure="DO_NOTHING",
        Tags=run.tags,
    )
    _until_made(run, CLUSTER, minutes=40)
    _take_outputs(run, CLUSTER)


def deploy(run: Run) -> None:
    """As a user would, from the unpacked bundle."""
    run.programs.run(
        run.bundle,
        *("sam", "deploy", "--stack-name", SPILLWAY, "--no-confirm-changeset", "--no-progressbar"),
        # A section that samconfig.toml does not have: that of `sam deploy` makes a bucket that would stay.
        *("--config-env", TAG, "--capabilities", "CAPABILITY_IAM"),
        *("--s3-bucket", run.bucket, "--tags", f"{TAG}={run.name}"),
        *("--parameter-overrides", f"TopicArn={run.outputs['Topic']}", f"MaintenanceLeadS={LEAD_S}"),
    )
    _take_outputs(run, SPILLWAY)


def enrol(run: Run) -> None:
    name = run.outputs["Cluster"]
    role = run.outputs["RoleArn"]
    run.aws.call("eks", "CreateAccessEntry", clusterName=name, principalArn=role, kubernetesGroups=["spillway"])
    run.aws.call(
        "autoscaling",
        "PutLifecycleHook",
        AutoScalingGroupName=run.outputs["Group"],
        LifecycleHookName="spillway",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=600,
        DefaultResult="CONTINUE",
    )
    run.programs.run(run.folder, "aws", "eks", "update-kubeconfig", "--name", name)
    run.programs.run(run.bundle, "kubectl", "apply", "--filename", "deploy/")
    run.programs.run(run.folder, "kubectl", "apply", "--filename", str(PODS))
    run.programs.run(run.folder, "kubectl", "rollout", "status", "deployment/smoke", "--timeout", "300s")


def doctor(run: Run) -> None:
    run.say(run.programs.run(run.bundle, "tools/spillway", "doctor", "--stack", SPILLWAY))


def terminate(run: Run) -> None:
    instance, since = _node(run), _now_ms()
    run.aws.call(
        "autoscaling", "TerminateInstanceInAutoScalingGroup", InstanceId=instance, ShouldDecrementDesiredCapacity=False
    )
    receipt = receipts.of_instance(run, instance, "terminate lifecycle action", since, minutes=10)
    receipts.expect_drained(receipt)
    if (hook := receipt["hook"])["state"] != "completed":
        raise SmokeError(f"the hook of {instance}: {hook}")
    wait(f"the end of {instance}", 600, lambda: _state(run, instance) in ("shutting-down", "terminated"), run.pause)


def interrupt(run: Run) -> None:
    instance, since = _node(run), _now_ms()
    run.aws.call(
        "cloudformation",
        "CreateStack",
        StackName=DRILL,
        TemplateBody=(run.bundle / "tools/fis-spot-interruption.yaml").read_text(),
        Parameters=[{"ParameterKey": "InstanceId", "ParameterValue": instance}],
        Capabilities=["CAPABILITY_IAM"],
        Tags=run.tags,
    )
    _until_made(run, DRILL, minutes=5)
    resource = run.aws.call("cloudformation", "DescribeStackResource", StackName=DRILL, LogicalResourceId="Experiment")
    template = resource["StackResourceDetail"]["PhysicalResourceId"]
    run.aws.call(
        "fis", "StartExperiment", clientToken=f"{TAG}-{since}", experimentTemplateId=template, tags={TAG: run.name}
    )
    receipts.expect_drained(receipts.of_instance(run, instance, "spot interruption", since, minutes=10))


def maintain(run: Run) -> None:
    instance, since = _node(run), _now_ms()
    event = maintenance(
        json.loads((run.bundle / "events/health-scheduled-maintenance.json").read_text()), run, instance
    )
    # As EventBridge invokes it; nobody may put an event of aws.health on the bus.
    run.aws.call(
        "lambda",
        "Invoke",
        FunctionName=run.outputs["FunctionName"],
        InvocationType="Event",
        Payload=json.dumps(event).encode(),
    )
    receipts.expect_drained(receipts.of_instance(run, instance, "scheduled maintenance", since, minutes=10))


def maintenance(event: dict[str, Any], run: Run, instance: str) -> dict[str, Any]:
    """The sample, about an instance of ours, soon."""
    now = datetime.now(UTC)
    detail = event["detail"]
    return {
        **event,
        "id": f"{TAG}-{now:%Y%m%d%H%M%S}",
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "account": run.account,
        "region": run.aws.region,
        "resources": [instance],
        "detail": {
            **detail,
            "startTime": format_datetime(now + timedelta(seconds=AHEAD_S), usegmt=True),
            "affectedEntities": [{"entityValue": instance, "status": "PENDING"}],
            "affectedAccount": run.account,
            "eventRegion": run.aws.region,
        },
    }


def message(run: Run) -> None:
    def look() -> list[dict[str, Any]]:
        url = run.outputs["Queue"]
        found: list[dict[str, Any]] = run.aws.call("sqs", "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20).get(
            "Messages", []
        )
        return found

    for one in wait("a message about a drain", 300, look, run.pause):
        run.say(f"    {json.loads(one['Body'])['Message'].splitlines()[0]}")


def recorded(run: Run) -> list[dict[str, Any]]:
    """All events that the recorder has seen, the first one first."""
    return list(receipts.lines(run, run.outputs["Recorder"]))


def _node(run: Run) -> str:
    """A node with pods of ours on it, whose instance Auto Scaling takes for healthy."""

    def look() -> str | None:
        groups = run.aws.call("autoscaling", "DescribeAutoScalingGroups", AutoScalingGroupNames=[run.outputs["Group"]])
        (group,) = groups["AutoScalingGroups"]
        serving = [one["InstanceId"] for one in group["Instances"] if one["LifecycleState"] == "InService"]
        arguments = ("get", "nodes", "--output", "jsonpath={.items[?(@.spec.unschedulable!=true)].spec.providerID}")
        nodes = run.programs.run(run.folder, "kubectl", *arguments).split()
        joined = {node.rpartition("/")[2] for node in nodes}
        return next((one for one in serving if one in joined), None)

    found: str = wait("a node that is ready", 900, look, run.pause)
    return found


def _state(run: Run, instance: str) -> str:
    reservations = run.aws.call("ec2", "DescribeInstances", InstanceIds=[instance])["Reservations"]
    state: str = reservations[0]["Instances"][0]["State"]["Name"]
    return state


def _until_made(run: Run, stack: str, minutes: int) -> None:
    def look() -> str | None:
        status: str = run.aws.call("cloudformation", "DescribeStacks", StackName=stack)["Stacks"][0]["StackStatus"]
        return None if status.endswith("_IN_PROGRESS") else status

    if (status := wait(f"the stack {stack}", minutes * 60, look, run.pause)) != "CREATE_COMPLETE":
        events = run.aws.call("cloudformation", "DescribeStackEvents", StackName=stack)["StackEvents"]
        reasons = [one["ResourceStatusReason"] for one in events if "ResourceStatusReason" in one]
        raise SmokeError(f"the stack {stack}: {status}: {'; '.join(reasons[-3:])}")


def _take_outputs(run: Run, stack: str) -> None:
    outputs = run.aws.call("cloudformation", "DescribeStacks", StackName=stack)["Stacks"][0]["Outputs"]
    run.outputs |= {one["OutputKey"]: one["OutputValue"] for one in outputs}


def _now_ms() -> int:
    return int(time.time() * 1000)

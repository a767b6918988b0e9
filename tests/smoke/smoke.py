"""Tries a release on a real AWS account, and takes everything away again: `scripts/smoke REGION`.

Stage A deploys the stack as a user would. CloudFormation, EventBridge and IAM Access Analyzer judge what is then there.
Stage B makes a cluster too, enrolls it, and has one node drained for a terminate hook. Stage C then interrupts a spot node:
its group launches another one while the hook holds the old one. Each resource has the tag `spillway-smoke`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
from bed_aws.ruler import Ruler
from bed_aws.template import read
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

TAG = "spillway-smoke"
HERE = Path(__file__).parent
PAUSE_S = 5
# All rules are on, and all rights are there.
KINDS = "spot,capacity,maintenance,state-change,terminate,rebalance"
WIDEST = (f"DrainOn={KINDS}", f"Webhook=/{TAG}/webhook", "Replace=spot")
IDENTITY = {"policyType": "IDENTITY_POLICY"}
RESOURCE = {"policyType": "RESOURCE_POLICY"}
TRUST = {**RESOURCE, "validatePolicyResourceType": "AWS::IAM::AssumeRolePolicyDocument"}


class SmokeError(Exception):
    """Something is not as the release says: the run ends, and everything is taken away."""


class Run:
    """One run in one account and Region."""

    def __init__(self, region: str, bundle: Path, folder: Path) -> None:
        self.region, self.bundle, self._clients = region, bundle, {}
        _, self.partition, _, _, self.account, _ = self.aws("sts").get_caller_identity()["Arn"].split(":", 5)
        self.name = f"{TAG}-{region}"
        self.bucket = f"{self.name}-{self.account}"
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            # Its own: the user's is not to get a cluster that is gone in an hour.
            "KUBECONFIG": str(folder / "kubeconfig"),
            "SAM_CLI_TELEMETRY": "0",
        }

    def aws(self, service: str) -> Any:
        # EventBridge takes fewer patterns in a second than are tried.
        config = Config(retries={"mode": "adaptive", "total_max_attempts": 10})
        return self._clients.setdefault(service, boto3.client(service, self.region, config=config))

    def program(self, *command: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            command, cwd=self.bundle, env=self._environment, input=stdin, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SmokeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def deploy(self, stack: str, *arguments: str) -> None:
        # A section that samconfig.toml does not have: that of `sam deploy` makes a bucket that would stay.
        ours = ("--stack-name", stack, "--config-env", TAG, "--s3-bucket", self.bucket, "--tags", f"{TAG}={self.name}")
        agreed = ("--no-confirm-changeset", "--no-progressbar", "--capabilities", "CAPABILITY_IAM")
        self.program("sam", "deploy", *ours, *agreed, *arguments)

    def outputs(self) -> dict[str, str]:
        (stack,) = self.aws("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def wait(what: str, seconds: int, look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(PAUSE_S)
    raise SmokeError(f"{what}: not within {seconds} s")


def deploy(run: Run) -> None:
    """Makes a bucket, and deploys the stack and its dashboard (5 minutes)."""
    where = {} if run.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": run.region}}
    run.aws("s3").create_bucket(Bucket=run.bucket, **where)
    run.aws("s3").put_bucket_tagging(Bucket=run.bucket, Tagging={"TagSet": [{"Key": TAG, "Value": run.name}]})
    run.deploy(run.name, "--parameter-overrides", *WIDEST)
    file, outputs = "deploy/cloudformation/dashboard.yaml", run.outputs()
    given = [f"{name}={outputs.get(name, run.name)}" for name in read(run.bundle / file)["Parameters"]]
    run.deploy(f"{run.name}-dashboard", "--template-file", file, "--parameter-overrides", *given)


def change_sets(run: Run) -> None:
    """Has CloudFormation plan the stack with other parameters, executes nothing."""
    ec2 = run.aws("ec2")
    subnets = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    if not subnets:
        raise SmokeError(f"{run.region} has no default VPC, whose subnets a change set is to name")
    default = [{"Name": "vpc-id", "Values": [subnets[0]["VpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    (group,) = ec2.describe_security_groups(Filters=default)["SecurityGroups"]
    # A change set asks IAM for none of them.
    role = f"arn:{run.partition}:iam::{run.account}:role/{TAG}"
    topic = f"arn:{run.partition}:sns:{run.region}:{run.account}:{TAG}"
    for parameters in (
        (f"SubnetIds={subnets[0]['SubnetId']}", f"SecurityGroupIds={group['GroupId']}"),
        (f"TopicArn={topic}", f"AlarmTopicArn={topic}"),
        ("DrainOn=off", "CordonOn=spot,terminate", "DryRun=true"),
        (f"RoleArns={role}-drain,{role}-schedules,{role}-announcer",),
    ):
        run.deploy(run.name, "--no-execute-changeset", "--parameter-overrides", *parameters)


def patterns(run: Run) -> None:
    """Asks EventBridge which rule lets which sample of events/ through, and compares it with the tests' matcher."""
    samples = {path.stem: json.loads(path.read_text()) for path in sorted((run.bundle / "events").glob("*.json"))}
    pages = run.aws("events").get_paginator("list_rules").paginate(NamePrefix=f"{run.name}-")
    rules = {one["Name"]: one["EventPattern"] for page in pages for one in page["Rules"] if "EventPattern" in one}
    wrong = []
    for rule, pattern in rules.items():
        ruler = Ruler({rule: json.loads(pattern)})
        for name, sample in samples.items():
            event = {**sample, "account": run.account}
            if "source" not in event:
                continue
            passes = run.aws("events").test_event_pattern(EventPattern=pattern, Event=json.dumps(event))["Result"]
            if passes != (rule in ruler.rules_for(event)):
                wrong.append(f"{rule}: {name} {'passes' if passes else 'does not pass'}")
    if wrong or not rules:
        raise SmokeError("EventBridge sees it otherwise than the tests: " + ("; ".join(wrong) or "no rule"))


def documents(run: Run) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Policies of the stack, and the kind that Access Analyzer is to take each for."""
    account = run.aws("iam").get_paginator("get_account_authorization_details")
    for page in account.paginate(Filter=["Role", "LocalManagedPolicy"]):
        for role in page["RoleDetailList"]:
            if role["RoleName"].startswith(run.name):
                yield f"{role['RoleName']}'s trust", TRUST, role["AssumeRolePolicyDocument"]
                for policy in role["RolePolicyList"]:
                    yield f"{role['RoleName']}/{policy['PolicyName']}", IDENTITY, policy["PolicyDocument"]
        for policy in page["Policies"]:
            if policy["PolicyName"].startswith(run.name):
                yield policy["PolicyName"], IDENTITY, policy["PolicyVersionList"][0]["Document"]
    sqs = run.aws("sqs")
    for url in sqs.list_queues(QueueNamePrefix=run.name).get("QueueUrls", []):
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]).get("Attributes", {})
        if "Policy" in found:
            yield url, RESOURCE, json.loads(found["Policy"])


def policies(run: Run) -> None:
    """Asks IAM Access Analyzer about each policy."""
    wrong = []
    for name, kind, policy in documents(run):
        judged = run.aws("accessanalyzer").validate_policy(policyDocument=json.dumps(policy), **kind)
        for finding in judged["findings"]:
            line = f"{name}: {finding['findingType']} {finding['issueCode']}: {finding['findingDetails']}"
            print(f"    {line}")
            if finding["findingType"] in ("ERROR", "SECURITY_WARNING"):
                wrong.append(line)
    if wrong:
        raise SmokeError("; ".join(wrong))


def cluster(run: Run) -> None:
    """Has eksctl make a cluster with two nodes (22 minutes, 0.15 USD)."""
    config = (HERE / "cluster.yaml").read_text().replace("NAME", run.name).replace("REGION", run.region)
    run.program("eksctl", "create", "cluster", "--config-file", "-", stdin=config)


def enroll(run: Run) -> None:
    """Enrolls the cluster and its group as a user would, and starts ten pods."""
    arguments = ("--cluster", run.name, "--groups", "--yes", "--stack", run.name)
    print(run.program(sys.executable, "tools/spillway", "enroll", *arguments))
    run.program("kubectl", "apply", "--filename", str(HERE / "pods.yaml"))
    run.program("kubectl", "rollout", "status", "deployment/smoke", "--timeout", "300s")


def drain(run: Run) -> None:
    """Ends an instance of the group: its node is drained and its hook completed (6 minutes)."""
    since = int(time.time() * 1000)
    path = "jsonpath={.items[0].spec.providerID}"
    instance = run.program("kubectl", "get", "nodes", "--output", path).rpartition("/")[2]
    end = run.aws("autoscaling").terminate_instance_in_auto_scaling_group
    end(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    pattern = f'{{ $.receipt = * && $.instance = "{instance}" && $.ending != "continued" }}'
    log = {"logGroupName": run.outputs()["LogGroupName"], "startTime": since, "filterPattern": pattern}

    def receipts() -> list[str]:
        pages = run.aws("logs").get_paginator("filter_log_events").paginate(**log)
        return [event["message"] for page in pages for event in page["events"]]

    receipt = json.loads(wait(f"the receipt of {instance}", 600, receipts)[0])
    if (receipt["ending"], receipt["hook"]["state"]) != ("drained", "completed"):
        raise SmokeError(f"{instance}: {receipt}")

    def ends() -> bool:
        (found,) = run.aws("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        return found["Instances"][0]["State"]["Name"] in ("shutting-down", "terminated")

    wait(f"the end of {instance}", 600, ends)


def spot_group(run: Run) -> None:
    """Adds a group with one spot instance that is replaced first (10 minutes)."""
    config = (HERE / "spot.yaml").read_text().replace("NAME", run.name).replace("REGION", run.region)
    run.program("eksctl", "create", "nodegroup", "--config-file", "-", stdin=config)
    arguments = ("--cluster", run.name, "--groups", "--replace", "--yes", "--stack", run.name)
    print(run.program(sys.executable, "tools/spillway", "enroll", *arguments))


def replacement(run: Run) -> None:
    """Interrupts the instance by FIS: EC2 confirms, and the launch does not wait for the hook (8 minutes)."""
    wanted = {"instance-lifecycle": "spot", "instance-state-name": "running", f"tag:{TAG}": run.name}
    filters = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
    (reservation,) = run.aws("ec2").describe_instances(Filters=filters)["Reservations"]
    (old,) = reservation["Instances"]
    request, instance = old["SpotInstanceRequestId"], old["InstanceId"]
    (group,) = (tag["Value"] for tag in old["Tags"] if tag["Key"] == "aws:autoscaling:groupName")
    tags = [{"Key": key, "Value": "true"} for key in ("spillway/drill", "spillway:replace")]
    run.aws("ec2").create_tags(Resources=[instance], Tags=tags)
    drill = (sys.executable, "tools/spillway", "drill", instance, "--yes", "--stack", run.name)
    began = time.monotonic()

    def launched() -> bool:
        (found,) = run.aws("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        (spot,) = run.aws("ec2").describe_spot_instance_requests(SpotInstanceRequestIds=[request])["SpotInstanceRequests"]
        states = {one["InstanceId"]: one["LifecycleState"] for one in found["Instances"]}
        print(f"    {time.monotonic() - began:4.0f} s: {spot['Status']['Code']}, {states}")
        return states.get(instance) == "Terminating:Wait" and len(states) > 1

    with ThreadPoolExecutor() as pool:
        receipt = pool.submit(run.program, *drill)
        wait("a launch while the hook holds the old instance", 600, launched)
        print(receipt.result())


STAGE_A = [deploy, change_sets, patterns, policies]
STAGE_B = [*STAGE_A, cluster, enroll, drain]
STAGES = {"A": STAGE_A, "B": STAGE_B, "C": [*STAGE_B, spot_group, replacement]}


def teardown(run: Run, stage: str) -> None:
    """Deletes by name, goes on after each failure, and ends with what still has the tag."""
    failed = []
    for remove in (delete_stacks, *([delete_cluster] if stage != "A" else []), delete_bucket, delete_logs):
        try:
            remove(run)
        except (BotoCoreError, ClientError, SmokeError) as error:
            failed.append(str(error))
    try:
        wait("nothing with the tag", 180, lambda: not tagged(run))
    except SmokeError:
        failed += [f"{arn}: it is still there" for arn in tagged(run)]
    if failed:
        raise SmokeError("not taken away, look yourself: " + "; ".join(failed))


def delete_stacks(run: Run) -> None:
    cloudformation = run.aws("cloudformation")
    for name in (f"{run.name}-dashboard", run.name):
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name)


def delete_cluster(run: Run) -> None:
    run.program("eksctl", "delete", "cluster", "--name", run.name, "--wait", "--disable-nodegroup-eviction")


def delete_bucket(run: Run) -> None:
    bucket = boto3.resource("s3", run.region).Bucket(run.bucket)
    bucket.objects.all().delete()
    bucket.delete()


def delete_logs(run: Run) -> None:
    # The log of the receipts outlives its stack.
    for _, found, name in (arn.partition(":log-group:") for arn in tagged(run)):
        if found:
            run.aws("logs").delete_log_group(logGroupName=name.removesuffix(":*"))


def tagged(run: Run) -> list[str]:
    """ARNs of all that has the tag of this run, without instances, which are listed for an hour after their end."""
    filters = [{"Key": TAG, "Values": [run.name]}]
    found = run.aws("resourcegroupstaggingapi").get_resources(TagFilters=filters)["ResourceTagMappingList"]
    return [one["ResourceARN"] for one in found if ":instance/" not in one["ResourceARN"]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/smoke", description=__doc__)
    parser.add_argument("region", metavar="REGION", help="such as us-east-1")
    parser.add_argument("--plan", action="store_true", help="only say what would be done; calls nobody")
    stages = "B is A, and then a cluster: an hour, about a dollar; C is B, and then a spot interruption"
    parser.add_argument("--stage", choices=STAGES, default="A", help=stages)
    parser.add_argument("--bundle", type=Path, help="the release: dist/spillway-VERSION.tar.gz")
    parsed = parser.parse_args()
    if not (parsed.plan or parsed.bundle):
        parser.error("which release? --bundle dist/spillway-VERSION.tar.gz (make release)")
    return parsed


def main() -> None:
    given = options()
    steps = STAGES[given.stage]
    if given.plan:
        print("\n".join(f"{step.__name__:12} {step.__doc__}" for step in [*steps, teardown]))
        return
    # A cancelled run tears down too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix=f"{TAG}-") as folder, tarfile.open(given.bundle) as tar:
        tar.extractall(folder, filter="data")
        (bundle,) = (one for one in Path(folder).iterdir() if (one / "template.yaml").is_file())
        run = Run(given.region, bundle, Path(folder))
        if left := tagged(run):
            raise SmokeError(f"another run is under way, or was killed: {TAG}={run.name} is on {', '.join(left)}")
        try:
            for step in steps:
                print(f"{step.__name__}: {step.__doc__}")
                step(run)
        finally:
            teardown(run, given.stage)
    print("Everything is as the release says, and taken away.")


if __name__ == "__main__":
    try:
        main()
    except (BotoCoreError, ClientError, SmokeError) as error:
        sys.exit(f"scripts/smoke: {error}")

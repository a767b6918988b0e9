"""Tries a release on a real AWS account, and takes everything away again: `scripts/smoke REGION`.

Stage A needs no cluster: CloudFormation, EventBridge, IAM Access Analyzer and CloudWatch judge what the release would deploy.
Stage B makes a cluster, deploys and enrolls as a user would, and has one node drained for a terminate hook. Stage C interrupts a spot
instance by AWS FIS, and shows that its group launches another one while the hook holds it. Each resource has the tag `spillway-smoke`.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
from bed_aws.intrinsics import Intrinsics
from bed_aws.ruler import Ruler
from bed_aws.template import read
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

TAG = "spillway-smoke"
HERE = Path(__file__).parent
PAUSE_S = 5
# Policies and patterns are judged as the stack with the most in it has them.
WIDEST = {"DrainOn": "spot,capacity,maintenance,state-change,terminate,rebalance", "Webhook": f"/{TAG}/webhook"}
IDENTITY = {"policyType": "IDENTITY_POLICY"}
RESOURCE = {"policyType": "RESOURCE_POLICY"}
TRUST = {**RESOURCE, "validatePolicyResourceType": "AWS::IAM::AssumeRolePolicyDocument"}


class SmokeError(Exception):
    """Something is not as the release says: the run ends, and everything is taken away."""


class Made(dict[str, str]):
    """Names and ARNs that only a deployment knows, in the form that they will have."""

    def __init__(self, run: "Run", resources: dict[str, Any]) -> None:
        where = f"{run.region}:{run.account}"
        super().__init__({"AWS::AccountId": run.account, "AWS::Region": run.region, "AWS::Partition": run.partition})
        self |= {"AWS::StackName": run.name, "AWS::URLSuffix": "amazonaws.com"}
        self["AWS::StackId"] = f"arn:{run.partition}:cloudformation:{where}:stack/{run.name}/00000000-0000-0000-0000-000000000000"
        for name, resource in resources.items():
            service = resource["Type"].split("::")[1].lower()
            form = {"lambda": f"function:{name}", "iam": f"role/{name}", "logs": f"log-group:{name}:*"}.get(service, name)
            place = f":{run.account}" if service == "iam" else where
            arn = f"arn:{run.partition}:{service}:{place}:{form}"
            by_arn = resource["Type"] in ("AWS::IAM::ManagedPolicy", "AWS::SNS::Topic")
            self |= {name: arn if by_arn else name.lower(), f"{name}.Arn": arn}

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return name.lower().replace(".", "-")


class Run:
    """One run in one account and Region."""

    def __init__(self, region: str, bundle: Path, folder: Path) -> None:
        self.region, self.bundle, self.folder = region, bundle, folder
        self._clients: dict[str, Any] = {}
        self.account, self.partition = "", "aws"
        _, self.partition, _, _, self.account, _ = self.aws("sts").get_caller_identity()["Arn"].split(":", 5)
        self.name = f"{TAG}-{region}"
        self.bucket = f"{self.name}-{self.account}"
        self.tags = [{"Key": TAG, "Value": self.name}]
        self.template: dict[str, Any] = {}
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

    def of_type(self, kind: str, template: dict[str, Any] | None = None) -> Iterator[tuple[str, Any]]:
        """Resources of a template, with all functions resolved."""
        template = template or self.template
        intrinsics = Intrinsics(template, WIDEST, Made(self, template["Resources"]))
        for name, resource in template["Resources"].items():
            if resource["Type"] == kind:
                yield name, intrinsics.value(resource["Properties"])


def wait(what: str, seconds: int, look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(PAUSE_S)
    raise SmokeError(f"{what}: not within {seconds} s")


def package(run: Run) -> None:
    """Makes a bucket and has sam put the release's packages there."""
    where = {} if run.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": run.region}}
    run.aws("s3").create_bucket(Bucket=run.bucket, **where)
    run.aws("s3").put_bucket_tagging(Bucket=run.bucket, Tagging={"TagSet": run.tags})
    packaged = run.folder / "packaged.yaml"
    run.program("sam", "package", "--s3-bucket", run.bucket, "--output-template-file", str(packaged))
    run.aws("s3").put_object(Bucket=run.bucket, Key="packaged.yaml", Body=packaged.read_bytes())


def parameter_sets(run: Run) -> dict[str, dict[str, str]]:
    """Six deployments that differ in what they make."""
    ec2 = run.aws("ec2")
    subnets = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    if not subnets:
        raise SmokeError(f"{run.region} has no default VPC, whose subnets a change set is to name")
    default = [{"Name": "vpc-id", "Values": [subnets[0]["VpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    (group,) = ec2.describe_security_groups(Filters=default)["SecurityGroups"]
    roles = [f"arn:{run.partition}:iam::{run.account}:role/{TAG}-{name}" for name in ("drain", "schedules", "announcer")]
    topic = f"arn:{run.partition}:sns:{run.region}:{run.account}:{TAG}"
    return {
        "default": {},
        "vpc": {"SubnetIds": subnets[0]["SubnetId"], "SecurityGroupIds": group["GroupId"]},
        "webhook": {"Webhook": WIDEST["Webhook"]},
        "topics": {"TopicArn": topic, "AlarmTopicArn": topic},
        "cordon-only": {"DrainOn": "off", "CordonOn": "spot,terminate", "DryRun": "true"},
        # A change set asks IAM for none of them.
        "roles": {"RoleArns": ",".join(roles)},
    }


def change_sets(run: Run) -> None:
    """Has CloudFormation plan six sets of parameters, executes none."""
    cloudformation = run.aws("cloudformation")
    url = f"https://s3.{run.region}.amazonaws.com/{run.bucket}/packaged.yaml"
    for name, parameters in parameter_sets(run).items():
        of_set = {"StackName": f"{TAG}-{name}", "ChangeSetName": name}
        cloudformation.create_change_set(
            **of_set,
            ChangeSetType="CREATE",
            TemplateURL=url,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Tags=run.tags,
        )

        def ended(of_set: dict[str, str] = of_set) -> Any:
            seen = cloudformation.describe_change_set(**of_set)
            return seen if seen["Status"] in ("CREATE_COMPLETE", "FAILED") else None

        try:
            seen = wait(f"the change set {name}", 300, ended)
            if seen["Status"] == "FAILED":
                raise SmokeError(f"the change set {name}: {seen.get('StatusReason')}")
            if name == "default":
                body = cloudformation.get_template(**of_set, TemplateStage="Processed")["TemplateBody"]
                run.template = json.loads(body) if isinstance(body, str) else body
        finally:
            # A stack that has only a change set has nothing in it.
            cloudformation.delete_stack(StackName=of_set["StackName"])


def patterns(run: Run) -> None:
    """Asks EventBridge which rule lets which sample of events/ through, and compares it with the tests' matcher."""
    samples = {path.stem: json.loads(path.read_text()) for path in sorted((run.bundle / "events").glob("*.json"))}
    wrong = []
    for rule, properties in run.of_type("AWS::Events::Rule"):
        if "EventPattern" not in properties:
            continue
        ruler = Ruler({rule: properties["EventPattern"]})
        for name, event in samples.items():
            if "source" not in event:
                continue
            event = {**event, "account": run.account}
            texts = {"EventPattern": json.dumps(properties["EventPattern"]), "Event": json.dumps(event)}
            passes = run.aws("events").test_event_pattern(**texts)["Result"]
            if passes != (rule in ruler.rules_for(event)):
                wrong.append(f"{rule}: {name} {'passes' if passes else 'does not pass'}")
    if wrong:
        raise SmokeError("EventBridge sees it otherwise than the tests: " + "; ".join(wrong))


def documents(run: Run) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Policies of the template, and the kind that Access Analyzer is to take each for."""
    for name, role in run.of_type("AWS::IAM::Role"):
        yield f"{name}'s trust", TRUST, role["AssumeRolePolicyDocument"]
        for policy in role.get("Policies", []):
            yield f"{name}/{policy['PolicyName']}", IDENTITY, policy["PolicyDocument"]
    for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        for name, policy in run.of_type(kind):
            yield name, IDENTITY, policy["PolicyDocument"]
    for name, policy in run.of_type("AWS::SQS::QueuePolicy"):
        yield name, RESOURCE, policy["PolicyDocument"]


def policies(run: Run) -> None:
    """Asks IAM Access Analyzer about each policy."""
    found = []
    for name, kind, policy in documents(run):
        # A document whose keys depend on a parameter is a text in the template.
        document = policy if isinstance(policy, str) else json.dumps(policy)
        for finding in run.aws("accessanalyzer").validate_policy(policyDocument=document, **kind)["findings"]:
            line = f"{name}: {finding['findingType']} {finding['issueCode']}: {finding['findingDetails']}"
            print(f"    {line}")
            if finding["findingType"] in ("ERROR", "SECURITY_WARNING"):
                found.append(line)
    if found:
        raise SmokeError("; ".join(found))


def dashboard(run: Run) -> None:
    """Puts the dashboard, reads what CloudWatch says of it, deletes it."""
    template = read(run.bundle / "deploy/cloudformation/dashboard.yaml")
    for parameter in template["Parameters"].values():
        parameter["Default"] = "https://sqs.example/123456789012/failures" if "https" in parameter.get("AllowedPattern", "") else run.name
    for _, properties in run.of_type("AWS::CloudWatch::Dashboard", template):
        name = f"{run.name}-dashboard"
        said = run.aws("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=properties["DashboardBody"])
        run.aws("cloudwatch").delete_dashboards(DashboardNames=[name])
        if messages := said.get("DashboardValidationMessages"):
            raise SmokeError("; ".join(f"the dashboard's {one.get('DataPath')}: {one.get('Message')}" for one in messages))


def cluster(run: Run) -> None:
    """Has eksctl make a cluster with two nodes (22 minutes, 0.15 USD)."""
    config = (HERE / "cluster.yaml").read_text().replace("NAME", run.name).replace("REGION", run.region)
    run.program("eksctl", "create", "cluster", "--config-file", "-", stdin=config)


def deploy(run: Run) -> None:
    """Deploys and enrolls as a user would, and asks the doctor."""
    arguments = ("--stack-name", run.name, "--no-confirm-changeset", "--no-progressbar", "--capabilities", "CAPABILITY_IAM")
    # A section that samconfig.toml does not have: that of `sam deploy` makes a bucket that would stay.
    run.program("sam", "deploy", *arguments, "--config-env", TAG, "--s3-bucket", run.bucket, "--tags", f"{TAG}={run.name}")
    print(run.program(sys.executable, "tools/spillway", "enroll", "--cluster", run.name, "--groups", "--yes", "--stack", run.name))
    run.program("kubectl", "apply", "--filename", str(HERE / "pods.yaml"))
    run.program("kubectl", "rollout", "status", "deployment/smoke", "--timeout", "300s")


def drain(run: Run) -> None:
    """Ends an instance of the group: its node is drained and its hook completed (6 minutes)."""
    since = int(time.time() * 1000)
    path = "jsonpath={.items[0].spec.providerID}"
    instance = run.program("kubectl", "get", "nodes", "--output", path).rpartition("/")[2]
    run.aws("autoscaling").terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    stack = run.aws("cloudformation").describe_stacks(StackName=run.name)["Stacks"][0]
    group = next(one["OutputValue"] for one in stack["Outputs"] if one["OutputKey"] == "LogGroupName")
    pattern = f'{{ $.receipt = * && $.instance = "{instance}" && $.ending != "continued" }}'

    def receipts() -> list[str]:
        pages = run.aws("logs").get_paginator("filter_log_events")
        found = pages.paginate(logGroupName=group, startTime=since, filterPattern=pattern)
        return [event["message"] for page in found for event in page["events"]]

    receipt = json.loads(wait(f"the receipt of {instance}", 600, receipts)[0])
    if (receipt["ending"], receipt["hook"]["state"]) != ("drained", "completed"):
        raise SmokeError(f"{instance}: {receipt}")

    def ends() -> bool:
        (found,) = run.aws("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        return found["Instances"][0]["State"]["Name"] in ("shutting-down", "terminated")

    wait(f"the end of {instance}", 600, ends)


def spot_group(run: Run) -> None:
    """Adds a group with one spot instance, deploys with Replace=spot, and tags the group (10 minutes)."""
    config = (HERE / "spot.yaml").read_text().replace("NAME", run.name).replace("REGION", run.region)
    run.program("eksctl", "create", "nodegroup", "--config-file", "-", stdin=config)
    arguments = ("--stack-name", run.name, "--no-confirm-changeset", "--no-progressbar", "--capabilities", "CAPABILITY_IAM")
    run.program("sam", "deploy", *arguments, "--config-env", TAG, "--s3-bucket", run.bucket, "--parameter-overrides", "Replace=spot")
    enroll = ("enroll", "--cluster", run.name, "--groups", "--replace", "--yes", "--stack", run.name)
    print(run.program(sys.executable, "tools/spillway", *enroll))
    tag = {"Key": "spillway:replace", "Value": "true"}
    run.aws("ec2").create_tags(Resources=[_spot_instance(run)["InstanceId"]], Tags=[tag])


def _spot_instance(run: Run) -> dict[str, Any]:
    wanted = {"instance-lifecycle": "spot", "instance-state-name": "running", f"tag:{TAG}": run.name}
    filters = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
    (reservation,) = run.aws("ec2").describe_instances(Filters=filters)["Reservations"]
    return reservation["Instances"][0]


def replacement(run: Run) -> None:
    """Interrupts the spot instance by FIS: the launch does not wait for the hook, and EC2 confirms (5 minutes)."""
    old = _spot_instance(run)
    (group,) = (tag["Value"] for tag in old["Tags"] if tag["Key"] == "aws:autoscaling:groupName")
    began = time.time()
    interrupt(run, old["InstanceId"])

    def launched() -> list[str]:
        (found,) = run.aws("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        request = run.aws("ec2").describe_spot_instance_requests(SpotInstanceRequestIds=[old["SpotInstanceRequestId"]])
        states = {one["InstanceId"]: one["LifecycleState"] for one in found["Instances"]}
        print(f"    {time.time() - began:4.0f} s: {request['SpotInstanceRequests'][0]['Status']['Code']}, {states}")
        held = states.get(old["InstanceId"]) == "Terminating:Wait"
        return [one for one in states if one != old["InstanceId"]] if held else []

    wait("an instance that is launched while the hook holds the old one", 600, launched)


def interrupt(run: Run, instance: str) -> None:
    """Has FIS interrupt the instance two minutes after its notice, by the stack of docs/drills.md."""
    cloudformation, name = run.aws("cloudformation"), f"{run.name}-drill"
    template = (run.bundle / "deploy/cloudformation/spot-interruption.yaml").read_text()
    chosen = [{"ParameterKey": "InstanceId", "ParameterValue": instance}]
    given = {"Parameters": chosen, "Capabilities": ["CAPABILITY_IAM"], "Tags": run.tags}
    cloudformation.create_stack(StackName=name, TemplateBody=template, **given)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name)
    (output,) = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
    run.aws("fis").start_experiment(experimentTemplateId=re.search(r"EXT\w+", output["OutputValue"])[0], tags={TAG: run.name})


STAGE_A = [package, change_sets, patterns, policies, dashboard]
STAGE_B = [cluster, deploy, drain]
STAGE_C = [spot_group, replacement]


def teardown(run: Run, stage: str) -> None:
    """Deletes by name, goes on after each failure, and ends with what still has the tag."""
    failed = []
    for remove in (delete_stack, *([delete_cluster] if stage != "A" else []), delete_bucket):
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


def delete_stack(run: Run) -> None:
    # Stage C has the second.
    for name in (run.name, f"{run.name}-drill"):
        run.aws("cloudformation").delete_stack(StackName=name)
        run.aws("cloudformation").get_waiter("stack_delete_complete").wait(StackName=name)


def delete_cluster(run: Run) -> None:
    run.program("eksctl", "delete", "cluster", "--name", run.name, "--wait", "--disable-nodegroup-eviction")


def delete_bucket(run: Run) -> None:
    bucket = boto3.resource("s3", run.region).Bucket(run.bucket)
    bucket.objects.all().delete()
    bucket.delete()


def tagged(run: Run) -> list[str]:
    """ARNs of all that has the tag of this run, without instances, which are listed for an hour after their end."""
    filters = [{"Key": TAG, "Values": [run.name]}]
    found = run.aws("resourcegroupstaggingapi").get_resources(TagFilters=filters)["ResourceTagMappingList"]
    return [one["ResourceARN"] for one in found if ":instance/" not in one["ResourceARN"]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/smoke", description=__doc__)
    parser.add_argument("region", metavar="REGION", help="such as us-east-1")
    parser.add_argument("--plan", action="store_true", help="only say what would be done; calls nobody")
    parser.add_argument("--stage", choices=("A", "B", "C"), default="A", help="B is A, and then a cluster: an hour, about a dollar; C is B, and then a spot interruption")
    parser.add_argument("--bundle", type=Path, help="the release: dist/spillway-VERSION.tar.gz")
    parsed = parser.parse_args()
    if not (parsed.plan or parsed.bundle):
        parser.error("which release? --bundle dist/spillway-VERSION.tar.gz (make release)")
    return parsed


def main() -> None:
    given = options()
    steps = STAGE_A + (STAGE_B if given.stage != "A" else []) + (STAGE_C if given.stage == "C" else [])
    if given.plan:
        print("\n".join(f"{step.__name__:12} {step.__doc__}" for step in [*steps, teardown]))
        return
    # A workflow that is cancelled tears down too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix=f"{TAG}-") as folder, tarfile.open(given.bundle) as tar:
        tar.extractall(folder, filter="data")
        (bundle,) = (one for one in Path(folder).iterdir() if (one / "template.yaml").is_file())
        run = Run(given.region, bundle, Path(folder))
        if left := tagged(run):
            raise SmokeError(f"another run is under way, or was killed: {', '.join(left)} have the tag {TAG}={run.name}")
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

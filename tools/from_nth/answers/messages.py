"""What people heard of NTH: webhook, events, logs, metrics."""

import json
import shlex

from ..installation import Installation
from ..parameters import WEBHOOK_PARAMETER, template_file, wanted
from .answer import Answer, Answers, Verdict, differs, no_counterpart, not_needed, same

NO_WEBHOOK = not_needed("There is no webhook's address, so NTH sent nothing.")


def address(nth: Installation) -> Answer:
    if reference := nth.referred.get("webhookURL", {}).get("secretKeyRef"):
        return moved(str(reference.get("name")), str(reference.get("key")))
    if nth["webhookURLSecretName"]:
        return not_needed("webhookURLSecretName wins over it.")
    if not nth["webhookURL"]:
        return same("No webhook.")
    return differs(
        "Whoever has the address can write to the channel, and a stack's parameters are for many to read: better put "
        f"it into Parameter Store and give WebhookUrlFrom={WEBHOOK_PARAMETER} instead. A message goes out when a "
        "drain begins and when it ends; NTH's came after the drain.",
        "WebhookUrl",
    )


def secret(nth: Installation) -> Answer:
    return (
        moved(nth["webhookURLSecretName"], "webhookurl")
        if nth["webhookURLSecretName"]
        else same("No webhook from a Secret.")
    )


def moved(name: str, key: str) -> Answer:
    """From a Secret of the cluster to Parameter Store."""
    return Answer(
        Verdict.DIFFERS,
        "The function reads no Secret of the cluster. Put the address into Parameter Store, before you deploy:",
        ("WebhookUrlFrom",),
        (
            f"aws ssm put-parameter --type SecureString --name {WEBHOOK_PARAMETER} "
            f'--value "$({kubectl_get("secret", name, key, " | base64decode")})"',
        ),
    )


def kubectl_get(kind: str, name: str, key: str, then: str = "") -> str:
    """The command that prints one key of a Secret or ConfigMap."""
    template = shlex.quote(f'{{{{index .data "{key}"{then}}}}}')
    return f"kubectl get {kind} {shlex.quote(name)} --namespace NAMESPACE --output go-template={template}"


def headers(nth: Installation) -> Answer:
    if not nth["webhookHeaders"]:
        return same("The default headers.")
    if not webhook_is_used(nth):
        return NO_WEBHOOK
    try:
        parsed = json.loads(nth["webhookHeaders"])
        good = isinstance(parsed, dict) and all(isinstance(one, str) for one in parsed.values())
    except ValueError:
        good = False
    if not good:
        return differs(
            "It is not a JSON map of texts, with which NTH's webhook cannot have worked. Mend it.", "WebhookHeaders"
        )
    return same("They take the place of the default ones.", "WebhookHeaders")


def proxy(nth: Installation) -> Answer:
    if not nth["webhookProxy"]:
        return same("No proxy.")
    if not webhook_is_used(nth):
        return NO_WEBHOOK
    return differs(
        "The function has to reach it: if it is in a VPC, so must the function be (SubnetIds).", "WebhookProxy"
    )


def message(nth: Installation) -> Answer:
    if template_file(nth):
        return not_needed("The template of the ConfigMap wins over it.")
    if not nth["webhookTemplate"]:
        return differs("NTH's text is the default; ours is a Slack message with blocks.")
    if not webhook_is_used(nth):
        return NO_WEBHOOK
    return same("Works unchanged, with NTH's fields and ours.", "WebhookTemplate")


def config_map(nth: Installation) -> Answer:
    name, key = nth["webhookTemplateConfigMapName"], nth["webhookTemplateConfigMapKey"]
    if not name and not key:
        return same("No template from a ConfigMap.")
    if not template_file(nth):
        return not_needed("NTH takes the ConfigMap only if both webhookTemplateConfigMapName and …Key name it.")
    if not webhook_is_used(nth):
        return NO_WEBHOOK
    return no_counterpart(
        "The function reads no ConfigMap. The template works unchanged; give its text as WebhookTemplate (up to "
        "3,000 characters):",
        kubectl_get("configmap", name, key),
    )


def webhook_is_used(nth: Installation) -> bool:
    return not wanted(nth).keys().isdisjoint({"WebhookUrl", "WebhookUrlFrom"})


def events(nth: Installation) -> Answer:
    if not nth["emitKubernetesEvents"]:
        return same("No Kubernetes events.")
    return differs(
        "NTH's reasons and sentences, so that alerts on them go on working. They come after the drain, and on pods only if "
        "they were told to leave; JSON has their reporter in reportingComponent. NodeEvents=spillway has our reasons. "
        "Either needs a right more: kubectl apply -f deploy/optional/node-events.yaml",
        "NodeEvents",
    )


def annotations(nth: Installation) -> Answer:
    if not nth["kubernetesEventsExtraAnnotations"]:
        return same("No further annotations.")
    return no_counterpart(
        "Events have no annotations of your own. Who looks for them has to look for the events' reasons."
    )


def level(nth: Installation) -> Answer:
    if nth["logLevel"].lower() == "error":
        return no_counterpart(
            "Receipts and metrics are lines of level INFO, so there is nothing above it. Nothing to do."
        )
    return same("The same level.", *(["LogLevel"] if nth["logLevel"].lower() == "debug" else []))


def prometheus(nth: Installation) -> Answer:
    if not nth["enablePrometheusServer"]:
        return same("Nothing is scraped. There are CloudWatch metrics.")
    return differs(
        "There is nothing to scrape: metrics come to CloudWatch with the log, in MetricsNamespace, and the stack brings "
        "a dashboard and alarms on them (docs/metrics.md). What you have on actions_total and events_error_total has to "
        "be made anew; a CloudWatch exporter brings ours to Prometheus."
    )


def monitor(nth: Installation) -> Answer:
    if nth["serviceMonitor.create"] or nth["podMonitor.create"]:
        return no_counterpart(
            "Nothing runs in the cluster to be scraped. A CloudWatch exporter brings our metrics to Prometheus."
        )
    return not_needed("NTH was not scraped by it.")


ANSWERS: Answers = {
    "webhookURL": address,
    "webhookURLSecretName": secret,
    "webhookHeaders": headers,
    "webhookProxy": proxy,
    "webhookTemplate": message,
    **dict.fromkeys(("webhookTemplateConfigMapName", "webhookTemplateConfigMapKey"), config_map),
    "WEBHOOK_TEMPLATE_FILE": no_counterpart(
        "The function reads no file. Give the template's text as WebhookTemplate (up to 3,000 characters)."
    ),
    "emitKubernetesEvents": events,
    "kubernetesEventsExtraAnnotations": annotations,
    "logLevel": level,
    "logFormatVersion": not_needed("The log has a format of its own: docs/receipt.md."),
    "jsonLogging": not_needed("The log is always JSON, in CloudWatch."),
    "enablePrometheusServer": prometheus,
    "prometheusServerPort": not_needed("Nothing is scraped."),
    **dict.fromkeys(
        [
            f"{kind}.{name}"
            for kind in ("serviceMonitor", "podMonitor")
            for name in ("create", "namespace", "labels", "interval", "sampleLimit")
        ],
        monitor,
    ),
}

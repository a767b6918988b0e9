"""What people heard of NTH: webhook, events, logs, metrics."""

from __future__ import annotations

import shlex

from .. import parameters, rendering
from ..installation import Installation, placeholder
from ..parameters import WEBHOOK_PARAMETER, has_address, template_file
from ..values import Unusable
from .answer import Answer, Answers, Verdict, differs, no_counterpart, not_needed, same

NO_WEBHOOK = not_needed("There is no webhook's address, so NTH sent nothing.")
IN_THE_DOCUMENT = "It goes into the webhook's document."


def address(nth: Installation) -> Answer:
    if "webhookURL" in nth.referred or nth["webhookURLSecretName"]:
        return secret_of(nth) if "webhookURL" in nth.referred else not_needed("webhookURLSecretName wins over it.")
    if not nth["webhookURL"]:
        return same("No webhook.")
    if found := placeholder(nth["webhookURL"]):
        return kept(' --webhook-url "$URL"', f"It has the placeholder {found}, and this tool does not know what takes its place: URL. ")
    if not has_address(nth):
        return no_counterpart(
            "Spillway posts to addresses that begin with https:// only: whoever reads the address on the way can write to "
            "the channel. Give the webhook one, and run this again."
        )
    return kept("")


def secret(nth: Installation) -> Answer:
    return secret_of(nth) if nth["webhookURLSecretName"] else same("No webhook from a Secret.")


def secret_of(nth: Installation) -> Answer:
    """From a Secret of the cluster to Parameter Store."""
    reference = nth.referred.get("webhookURL", {}).get("secretKeyRef") or {}
    name = str(reference.get("name") or nth["webhookURLSecretName"])
    key = str(reference.get("key") or "webhookurl")
    url = kubectl_get("secret", name, key, " | base64decode")
    return kept(f' --webhook-url "$({url})"', "The function reads no Secret of the cluster. ")


def kept(options: str, first: str = "") -> Answer:
    """The document is made of the values by this tool, so that no secret is shown or stands in a command."""
    return Answer(
        Verdict.DIFFERS,
        f"{first}Address, headers, proxy and template are one document, kept in Parameter Store and not in the stack, whose "
        "parameters are for many to read. Put it there before you deploy. A message goes out when a drain begins and when "
        "it ends; NTH's came after the drain.",
        ("Webhook",),
        (
            f"aws ssm put-parameter --type SecureString --tier Intelligent-Tiering --name {WEBHOOK_PARAMETER} "
            f'--value "$(tools/spillway from-nth --webhook{options} FILE)"',
        ),
    )


def kubectl_get(kind: str, name: str, key: str, then: str = "") -> str:
    """The command that prints one key of a Secret or ConfigMap."""
    template = shlex.quote(f'{{{{index .data "{key}"{then}}}}}')
    return f"kubectl get {kind} {shlex.quote(name)} --namespace NAMESPACE --output go-template={template}"


def headers(nth: Installation) -> Answer:
    if not nth["webhookHeaders"]:
        return same("The default headers.")
    if not has_address(nth):
        return NO_WEBHOOK
    try:
        parameters.headers(nth["webhookHeaders"])
    except Unusable:
        return no_counterpart(
            "It is no JSON map of texts, with which NTH's webhook cannot have worked. Fix it, and run this again."
        )
    return same(f"They take the place of the default ones. {IN_THE_DOCUMENT}", "Webhook")


def proxy(nth: Installation) -> Answer:
    if not nth["webhookProxy"]:
        return same("No proxy.")
    if not has_address(nth):
        return NO_WEBHOOK
    return differs(
        "The function has to reach it: if it is in a VPC, so must the function be (SubnetIds). " + IN_THE_DOCUMENT,
        "Webhook",
    )


def message(nth: Installation) -> Answer:
    if template_file(nth):
        return not_needed("The template of the ConfigMap wins over it.")
    if not nth["webhookTemplate"]:
        return differs("NTH's text is the default; ours is a Slack message with blocks.")
    if not has_address(nth):
        return NO_WEBHOOK
    rendered = rendering.of(nth["webhookTemplate"])
    if rendered is None:
        return differs(f"It has not been rendered here. {PREVIEW} {IN_THE_DOCUMENT}", "Webhook")
    if rendered.failed:
        return no_counterpart(f"It does not work as it is: {rendered.failed}. Fix it, and run this again.")
    return same(
        f"Works unchanged: it was rendered over sample drains, with NTH's fields and ours. {IN_THE_DOCUMENT}", "Webhook"
    )


PREVIEW = "tools/announce-preview --template FILE shows what becomes of a template, without sending anything."


def config_map(nth: Installation) -> Answer:
    name, key = nth["webhookTemplateConfigMapName"], nth["webhookTemplateConfigMapKey"]
    if not name and not key:
        return same("No template from a ConfigMap.")
    if not template_file(nth):
        return not_needed("NTH takes the ConfigMap only if both webhookTemplateConfigMapName and …Key name it.")
    if not has_address(nth):
        return NO_WEBHOOK
    return Answer(
        Verdict.DIFFERS,
        f"The function reads no ConfigMap: the template's text goes into the webhook's document. {PREVIEW} The option to "
        "add to the command that makes the document:",
        ("Webhook",),
        (f'--webhook-template "$({kubectl_get("configmap", name, key)})"',),
    )


def events(nth: Installation) -> Answer:
    if not nth["emitKubernetesEvents"]:
        return same("No Kubernetes events.")
    return differs(
        "Spillway's events have reasons and a reporter of their own: change alerts on NTH's reasons (docs/what-happens.md "
        "lists ours). They come after the drain, and on pods only if they were evicted or blocked. They need a right more: "
        "kubectl apply -f deploy/optional/node-events.yaml",
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
    if nth["logLevel"].lower() == "debug":
        return no_counterpart("The log is of level INFO: the receipt has each pod and each step. Nothing to do.")
    return same("The same level.")


def prometheus(nth: Installation) -> Answer:
    if not nth["enablePrometheusServer"]:
        return same("Nothing is scraped. There are CloudWatch metrics.")
    return differs(
        "There is nothing to scrape: metrics come to CloudWatch with the log, in the namespace Spillway, and the stack brings "
        "a dashboard and alarms on them (docs/metrics.md). What you have on actions_total and events_error_total has to "
        "be made again; a CloudWatch exporter brings ours to Prometheus."
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
        "The function reads no file. Give the template's text by --webhook-template, with --webhook."
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

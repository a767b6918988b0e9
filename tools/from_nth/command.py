"""The command line: values in, the report and the parameters out."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from cli import FINDING, FINE, Failed
from cli import options as common

from . import fleet, sam, template, values
from .fleet import EVERY_CLUSTER, WIDEST, Source
from .installation import installation, nearest
from .parameters import document
from .report import Conversion, convert, render

DESCRIPTION = """\
Reads the Helm values of aws-node-termination-handler and says, for each of them, what Spillway has for it.

  helm get values RELEASE --namespace NAMESPACE >nth-values.yaml
  tools/spillway from-nth nth-values.yaml                                # the report
  tools/spillway from-nth --samconfig samconfig.toml nth-values.yaml     # and the section from-nth of samconfig.toml

A HelmRelease of Flux and an Application of Argo CD are taken as they are. Several clusters of one stack are translated together:

  tools/spillway from-nth --samconfig samconfig.toml prod=prod-values.yaml stage=stage-values.yaml
"""
# A cluster's name as EKS takes it, and the file with its values.
OF_CLUSTER = re.compile(r"([0-9A-Za-z][0-9A-Za-z_-]{0,99})=(.+)")


def parser() -> argparse.ArgumentParser:
    made = common.parser("from-nth", DESCRIPTION, "spillway from-nth --cluster prod nth-values.yaml", needs_stack=False)
    named = "the values, YAML or JSON; - or nothing reads standard input. Several files each name their cluster"
    made.add_argument("files", metavar="[CLUSTER=]FILE", nargs="*", help=named)
    several = {"action": "append", "default": []}
    made.add_argument("--cluster", metavar="NAME", **several, help="NTH's cluster: Spillway keeps to it; repeated, if all have the values of the one file")
    made.add_argument("--live", action="store_true", help="with DryRun=false; without it, DryRun=true")
    made.add_argument("--all", action="store_true", help="show what is not needed too, and why")
    of_its_own = "a parameter of Spillway's own, which wins over what NTH's values say; may be repeated"
    made.add_argument("--set", **several, metavar="NAME=VALUE", type=parameter, help=of_its_own)
    made.add_argument("--hook", **several, metavar="NAME", help="a terminate hook of your groups to complete, for the parameter Hooks; may be repeated")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--samconfig", metavar="FILE", help=f"write the section {sam.ENVIRONMENT} of this samconfig.toml, in place of the one that is there")
    form.add_argument("--overrides", action="store_true", help="write --parameter-overrides …; the report goes to standard error")
    form.add_argument("--webhook", action="store_true", help="write the webhook's document, which has its secrets, and nothing else")
    made.add_argument("--webhook-url", metavar="URL", default="", help="with --webhook: the address, if a Secret has it")
    made.add_argument("--webhook-template", metavar="TEXT", default="", help="with --webhook: the template, if a ConfigMap has it")
    return made


def run(options: argparse.Namespace) -> int:
    if not options.files and sys.stdin.isatty():
        raise Failed("no values: name a file, or pipe `helm get values` into it")
    found = sources(options.files or ["-"], options.cluster)
    if options.webhook:
        if len(found) > 1:
            raise values.Unusable("--webhook writes one document: give the file that has the webhook of the stack")
        print(json.dumps(document(found[0].nth, options.webhook_url, options.webhook_template), ensure_ascii=False))
        return FINE
    return converted(found, options)


def sources(files: list[str], clusters: list[str]) -> list[Source]:
    """The values, and whose they are: `prod=prod-values.yaml stage=stage-values.yaml`."""
    named = [OF_CLUSTER.fullmatch(one) for one in files]
    if clusters and (len(files) > 1 or named[0]):
        raise values.Unusable("--cluster is for one file: name each file's cluster with it, as prod=prod-values.yaml")
    if len(files) > 1 and not all(named):
        raise values.Unusable("whose values are they? Name the cluster of each file: prod=prod-values.yaml")
    whose = [(name[2], (name[1],)) if name else (file, tuple(clusters)) for file, name in zip(files, named)]
    return fleet.joined([source(file, its) for file, its in whose])


def source(file: str, clusters: tuple[str, ...]) -> Source:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return Source(file, installation(values.read(raw.decode("utf-8-sig"))), clusters)
    except UnicodeDecodeError:
        raise values.Unusable(f"{file}: it is not text in UTF-8") from None
    except values.Unusable as error:
        raise values.Unusable(f"{'standard input' if file == '-' else file}: {error}") from None


def converted(sources: list[Source], options: argparse.Namespace) -> int:
    known = template.parameters()
    hooks = {"Hooks": ",".join(dict.fromkeys(options.hook))} if options.hook else {}
    by_hand = hooks | dict(options.set)
    conversions = [convert(one.nth, ",".join(one.clusters), options.live, by_hand) for one in sources]
    parts = {one.name: its.parameters for one, its in zip(sources, conversions)}
    for name, value in (pair for its in parts.values() for pair in its.items()):
        refuse_what_the_template_refuses(name, value, known)
    samconfig = Path(options.samconfig) if options.samconfig else None
    parts = {**of_section(samconfig, sources), **parts}
    parameters, contradictions = fleet.merged(parts, sources, known, dict(options.set))

    width = min(WIDEST, shutil.get_terminal_size((100, 24)).columns)
    heads = [f"== {one.name} ==\n" if len(sources) > 1 else "" for one in sources]
    reports = [head + render(conversion, width, options.all) for head, conversion in zip(heads, conversions)]
    report = "\n".join([*reports, *([fleet.render(contradictions)] if contradictions else [])])
    if contradictions and (samconfig or options.overrides):
        sys.stderr.write(report)
        print("\nspillway from-nth: nothing is written: see CONTRADICTIONS", file=sys.stderr)
    elif options.output == "json":
        print(json.dumps(as_json(sources, conversions, parameters, contradictions), indent=2, ensure_ascii=False))
    elif options.overrides:
        sys.stderr.write(report)
        print(sam.overrides(parameters))
    elif samconfig:
        before = samconfig.read_text(encoding="utf-8") if samconfig.exists() else ""
        samconfig.write_text(sam.with_section(before, parameters), encoding="utf-8")
        deploy = f"sam deploy --config-env {sam.ENVIRONMENT}"
        print(f"{report}\nThe section {sam.ENVIRONMENT} of {samconfig} is written: {deploy}")
    else:
        sys.stdout.write(report + fleet.closing(parameters, sources))
    return FINDING if contradictions else FINE


def as_json(
    sources: list[Source], conversions: list[Conversion], parameters: dict[str, str], contradictions: list[fleet.Contradiction]
) -> dict[str, Any]:
    lines = [
        {"of": source.name, "value": line.value, **vars(line.answer), "verdict": line.answer.verdict.value}
        for source, conversion in zip(sources, conversions)
        for line in conversion.lines
    ]
    return {"parameters": parameters, "contradictions": [vars(one) for one in contradictions], "values": lines}


def of_section(samconfig: Path | None, sources: list[Source]) -> dict[str, dict[str, str]]:
    """Parameters in the section for clusters whose values are not given now."""
    its = sam.parameters_of(samconfig.read_text(encoding="utf-8")) if samconfig and samconfig.exists() else None
    if its is None:
        return {}
    named = set(its["Clusters"].split(",")) if its.get("Clusters") else set()
    now = {cluster for one in sources for cluster in one.clusters}
    if named <= now and bool(named) == bool(now):
        return {}
    return {f"the section of {samconfig}, for {', '.join(sorted(named)) or EVERY_CLUSTER}": its}


def parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def refuse_what_the_template_refuses(name: str, value: str, known: template.Parameters) -> None:
    if name not in known:
        meant = nearest(name, known)
        raise values.Unusable(f"{name}={value}: there is no such parameter{f'; is it {meant}?' if meant else ''}")
    if why := template.refusal(value, known[name]):
        raise values.Unusable(f"{name}={value}: {why}")

"""How NTH itself ran in the cluster."""

from __future__ import annotations

from .answer import Answers, differs, not_needed

POD = not_needed("It is about NTH's own pods; nothing of Spillway runs in the cluster.")
TESTING = not_needed("It is for NTH's own tests. To try Spillway without AWS: make demo, make bed (docs/drills.md).")
PROBE = not_needed("Nothing runs between notices, so there is nothing to probe.")

ANSWERS: Answers = {
    **dict.fromkeys(
        (
            "image.repository image.tag image.pullPolicy image.pullSecrets nameOverride fullnameOverride "
            "customLabels podLabels podAnnotations podSecurityContext securityContext terminationGracePeriodSeconds "
            "resources topologySpreadConstraints replicas strategy podDisruptionBudget priorityClassName "
            "linuxPodLabels windowsPodLabels linuxPodAnnotations windowsPodAnnotations updateStrategy "
            "daemonsetPriorityClassName useHostNetwork dnsPolicy dnsConfig linuxDnsPolicy windowsDnsPolicy"
        ).split(),
        POD,
    ),
    **dict.fromkeys(("probes", "enableProbesServer", "PROBES_SERVER_PORT", "PROBES_SERVER_ENDPOINT"), PROBE),
    **dict.fromkeys(
        ("serviceAccount.create", "serviceAccount.name"),
        not_needed("The function has a role of its own, by template.yaml."),
    ),
    "serviceAccount.annotations": not_needed(
        "The function has a role of its own, by template.yaml. The role that is named here can go with NTH."
    ),
    **dict.fromkeys(
        ("rbac.create", "rbac.pspEnabled"), not_needed("The rights in the cluster: kubectl apply -f deploy/.")
    ),
    "extraEnv": differs("Each variable has a line of its own."),
    **dict.fromkeys(
        ("awsEndpoint", "awsAccessKeyID", "awsSecretAccessKey", "instanceMetadataURL", "procUptimeFile"), TESTING
    ),
    **dict.fromkeys(("NODE_NAME", "POD_NAME", "NAMESPACE"), not_needed("The node comes from the notice.")),
    **dict.fromkeys(
        ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"),
        not_needed("The cluster's endpoint comes from eks:DescribeCluster."),
    ),
}

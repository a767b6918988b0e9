"""What only a real account can show, step by step: `scripts/smoke REGION`.

Stage A needs no cluster: CloudFormation, EventBridge, IAM Access Analyzer, CloudWatch and Logs
Insights judge what the release would deploy. Stage B makes a cluster, deploys, and has four
notices drained. Whatever happens, all of it is taken away again, found by its tag.

`step`       a step, and what it costs
`aws`        the one door to AWS: each call of this program is made there
`programs`   the programs that it runs: sam, kubectl, aws
`run`        what the steps of one run share
`resolve`    a template's intrinsic functions, as far as policies, dashboards and patterns need them
`stage_a`, `stage_b`
`events`     real events, and how their shape differs from the samples in events/
`receipts`   waiting for what the function writes
`teardown`   taking it all away
"""

"""The AWS side of the test bed: moto, and stand-ins for what moto lacks, in one process.

Layout, in the way of a call:

    __main__     starts everything, says where it listens
    app          the one HTTP server: /bed/… to bed_api, everything else is an AWS call
    call         which service, action and caller a request is
    journal      every AWS call, for tests that count
    faults       AWS calls that a test wants to go wrong
    signature    SigV4, checked for every call
    errors       an AWS error in the shape of the service's protocol
    autoscaling  stand-in: lifecycle actions, and the tags of groups
    hooks        what a lifecycle hook holds up, and its action on one instance
    eks          stand-in: clusters and their access entries
    stacks       stand-in: DescribeStacks, GetTemplate, DeleteStack
    scheduler    stand-in: what EventBridge Scheduler refuses, and schedules that fire
    shapes       a request by AWS' own model of it
    sts          stand-in: GetCallerIdentity behind a CONNECT proxy, for aws-iam-authenticator
    moto_side    everything else: moto, and the handles to its state
    bed_api      what a test sets up, sends, breaks and counts
    targets      target groups of load balancers
    pages        answers in several pages
    state        what has state, made once: of the above, and instances, credentials, notices, failures
    template     the product's template
    rules        its EventBridge rules, put into moto
    ruler        which of them let an event through
    stack        its schedule group and role, put into moto
"""

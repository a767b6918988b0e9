"""Enrols EKS clusters with a stack of Spillway: access entry, Kubernetes objects, lifecycle hooks. Needs the AWS CLI and kubectl.

What is decided is pure, over plain data: each decision answers with steps, and a step that changes something carries the one
command that does it. So `--plan` shows the steps, a run carries them out, and a cluster that cannot be reached gets them as text.

command.py   the command line: reads the stack, works on the clusters side by side, prints
clusters.py  which clusters are meant, and what EKS says of each
enrolment.py one cluster from beginning to end, in both directions
access.py    decides: the access entry, or the line in aws-auth
objects.py   decides: the objects of deploy/
groups.py    decides: the hooks of Auto Scaling groups, and their tag
nodes.py     decides: which cordoned nodes are given back when Spillway goes
step.py      a step, and what came of it
doctor.py    asks the function whether the next notice would be handled
table.py     the results as text and as JSON
kubectl.py   kubectl, with a kubeconfig of our own for each cluster
"""

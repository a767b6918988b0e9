"""Enrols EKS clusters with a stack: access entry, Kubernetes objects, lifecycle hooks. Needs the AWS CLI and kubectl.

Decisions are pure: each returns steps, and a step that changes something carries its one command. `--plan` shows the steps, a run
carries them out, and a cluster that cannot be reached gets them as text. Start with enrolment.py.
"""

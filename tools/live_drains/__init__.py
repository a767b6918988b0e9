"""What drains now, in all clusters. Needs Python 3.9, kubectl, and the AWS CLI 2 to list clusters.

It goes one way:

* `command`: what is typed, and how often it looks;
* `clusters`: which clusters there are, by the AWS CLI or by kubectl's contexts;
* `look`: what is read of a cluster, and what is remembered from one look to the next;
* `api_server`: GET requests through `kubectl proxy`;
* `drains`: a drain from what was read; `claim`: what the annotation on a node says; `blockers`: what keeps a pod from being
  evicted. Pure;
* `table`: drains as text. Pure.

Names, annotations and labels are written by others: each is cut and made printable where it is read.
"""

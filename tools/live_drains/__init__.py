"""Current drains in all clusters. Needs kubectl, and the AWS CLI 2 to list clusters.

look.py reads a cluster by api_server.py; drains.py derives the drains from claims, pods and budgets; table.py prints them. Names, annotations
and labels are foreign text: each is cut and made printable where it is read.
"""

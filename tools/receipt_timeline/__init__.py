"""Receipts (docs/receipt.md) as text or as a picture: one drain pod by pod, or many node by node.

find.py finds receipts in a log, receipt.py reads them, drain.py joins the invocations of a drain, fleet.py the drains of nodes. page.py and
fleet_page.py draw them with bars.py, lanes.py and scale.py; text.py prints them.
"""

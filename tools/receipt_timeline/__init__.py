"""Receipts (docs/receipt.md) as text, as an HTML page or as JSON.

find.py finds receipts in a log, receipt.py reads them, drain.py joins the invocations of a drain; text.py and page.py
show drains.
"""

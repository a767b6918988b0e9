"""The receipts of a time from the function's log, by the AWS CLI. Needs Python 3.9 and the AWS CLI 2.

* `times`: what a person types for a time; pure;
* `command`: the calls, and what is printed.
"""

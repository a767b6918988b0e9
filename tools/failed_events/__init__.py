"""Events of the failure queue: what they are, and which may be sent again.

* `command`: the options, the table, the requests to AWS;
* `event`: one message of the queue as plain data, in both forms. Pure.
"""

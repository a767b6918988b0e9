"""The doctor's report, printed for a person at a terminal. Needs the AWS CLI to ask the function.

* `command`: the options, the request to the function;
* `forecast`: the pods that will hold the drain of a node;
* `report`: the JSON document to plain data, or why it is none;
* `page`: what is printed;
* `shell`: a command on as many lines as it needs.
"""

"""The doctor's report, printed for a person at a terminal. Needs the AWS CLI to ask the function.

* `command`: what is typed, asked of the function, read and written;
* `report`: the JSON document to plain data, or why it is none;
* `page`: what is printed;
* `shell`: a command on as many lines as it needs.
"""

"""The doctor's report, printed for a person at a terminal. Needs Python 3.9 and nothing else.

* `command`: what is typed, read and written;
* `report`: the JSON document to plain data, or why it is none;
* `page`: what is printed;
* `shell`: a command on as many lines as it needs.
"""

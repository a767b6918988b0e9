"""Receipts (docs/receipt.md) as text or as a picture: one drain pod by pod, or many node by node. Needs the AWS CLI for the log.

It goes one way:

* `command`: what is typed, read and written;
* `log`: the receipts of a time from the function's log; `times`: what a person types for a time;
* `find`: the receipts in whatever was given, a log above all;
* `receipt`: one JSON document to plain data, or why it is no receipt;
* `drain`: the receipts of one drain's invocations made one;
* `groups`: which pods the reader sees first; `fleet`: the drains of many nodes, and which of them the reader sees first;
* `scale`: times to places;
* `words`: durations, times and sentences;
* `markup`: elements of HTML and SVG; `marks`: the shapes among them; `sheet`: what every page has;
* `bars`: one row for each pod; `lanes`: the rows above them; `page`: a drain; `fleet_page`: many of them;
* `text`: the same for a terminal.
"""

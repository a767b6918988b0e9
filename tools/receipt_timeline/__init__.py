"""A drain's receipt (docs/receipt.md) as a picture. Needs Python 3.9 and nothing else.

It goes one way:

* `command`: what is typed, read and written;
* `find`: the receipts in whatever was given, a log above all;
* `receipt`: one JSON document to plain data, or why it is no receipt;
* `drain`: the receipts of one drain's invocations made one;
* `groups`: which pods the reader sees first;
* `scale`: times to places;
* `words`: durations, times and sentences;
* `markup`: elements of HTML and SVG; `marks`: the shapes among them;
* `bars`: one row for each pod; `lanes`: the rows above them; `page`: all of it.
"""

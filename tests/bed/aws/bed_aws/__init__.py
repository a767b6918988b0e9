"""The AWS side of the test bed: moto, and stand-ins for what moto lacks, in one process.

The way of a call: `app` takes it from HTTP, `call` reads it, `faults` break it, `signature`, `models`, `iam` and `limits`
judge it, a stand-in or moto (`moto_side`) answers it. `bed_api` is the bed's own API. `state` makes everything.
"""

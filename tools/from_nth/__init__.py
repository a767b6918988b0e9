"""From the Helm values of aws-node-termination-handler (NTH) to Spillway's parameters.

values.py       a file or `helm get values` → a map, or an error that says what is wrong with it
manifests.py    the values in a HelmRelease of Flux, or in an Application of Argo CD; helm_set.py: its parameters
chart.txt       a table of NTH's chart: every value, its kind, its default, its variable, and what becomes of it; chart.py reads it
installation.py what NTH was told: the values, and `extraEnv` over them, over the chart's defaults
parameters.py   what Spillway is told for it
answers.py      follows the lines of the table for one installation
template.py     template.yaml: which parameters this version has, and what they take
report.py       a line for every value, for people
fleet.py        several clusters' parameters as one set, and what contradicts itself
closing.py      the steps to change over
sam.py          the parameters, for `sam deploy`
command.py      the command line
"""

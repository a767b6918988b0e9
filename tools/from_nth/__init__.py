"""From the Helm values of aws-node-termination-handler (NTH) to Spillway's parameters.

values.py and manifests.py read a file; installation.py applies it to the chart (chart.txt); parameters.py derives our parameters;
answers.py follows the chart's table for each value; report.py prints; fleet.py merges clusters; sam.py writes samconfig.toml.
"""

"""Attacks on the package by command: kills, full disks, damaged files, bad arguments, strange surroundings.

`make torture MINUTES=30` runs them all; docs/reliability.md says what each of them checks.
"""

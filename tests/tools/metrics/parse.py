"""Reads metrics in the text form of OpenMetrics from stdin, and prints them as JSON: a list of
[name, labels, value]. The parser is the strict one of Prometheus' own Python client."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = text_string_to_metric_families(sys.stdin.read())
samples = [[s.name, s.labels, s.value] for family in families for s in family.samples]
json.dump(samples, sys.stdout)

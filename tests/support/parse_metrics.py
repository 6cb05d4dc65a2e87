#!/usr/bin/env python3
"""usage: parse_metrics.py prometheus|openmetrics FILE

Parses a text of metrics with the Python client of Prometheus. Prints the number of samples. Ends with 77 if the client is not installed.
"""

import pathlib
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
    from prometheus_client.parser import text_string_to_metric_families as parse_prometheus
except ImportError:
    print("the Python package prometheus_client is not installed")
    sys.exit(77)

parse = {"prometheus": parse_prometheus, "openmetrics": parse_openmetrics}[sys.argv[1]]
families = list(parse(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")))
if not families or any(family.type not in ("counter", "gauge", "histogram") for family in families):
    sys.exit("a family has no type")
print(sum(len(family.samples) for family in families))

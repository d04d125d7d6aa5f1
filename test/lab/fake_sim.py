#!/usr/bin/python3 -S
"""Stands in for velo-sim: figure 7.5 as the thesis has it. FAKE_FLAT: no overhead at all."""

import json
import os
import pathlib
import sys

NEEDED = {"static": 64, "dynamic": 16}
METRICS = {f"average_{policy}_{slots}{way}": [1.0 if slots >= needed or way or "FAKE_FLAT" in os.environ else 10.0]
           for policy, needed in NEEDED.items() for slots in (8, 16, 32, 64) for way in ("", "_by_reference")}

with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as file:
    file.write("velo-sim " + " ".join(sys.argv[1:]) + "\n")
(pathlib.Path(sys.argv[sys.argv.index("--output") + 1]) / "fig7.5-256-metrics.json").write_text(json.dumps(METRICS))

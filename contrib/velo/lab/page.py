"""The report: one HTML file with everything in it, nothing loaded from elsewhere."""

import base64
import csv
import html
import json
import time
from pathlib import Path

from .. import machine
from ..command import Trouble
from . import output, simulated
from .catalogue import BY_NAME
from .experiment import FITTED, NOT_SHOWN, OPEN, PREDICTED, SHOWN

_STYLE = Path(__file__).resolve().with_name("page.css")
_CLASSES = {SHOWN: "shown", NOT_SHOWN: "not-shown", OPEN: "open"}
_COLUMNS = ("workload", "series", "x", "ranks", "rounds", "time_usec", "overhead_percent", "delayed_percent", "delayed_of_pattern_percent",
            "credit_packets_per_1000_messages", "requests", "steals", "mailbox_bytes_per_rank")


class NothingToReport(Trouble):
    pass


def write_report(directory, target, simulation=None):
    """`simulation`: a folder that velo-sim has written, if any. Returns how many experiments it holds."""
    found = [(path.parent, _load(path)) for path in sorted(directory.glob(f"*/{output.RESULT}"))]
    verdicts = simulated.find(simulation) if simulation else []
    if simulation and not verdicts:
        raise NothingToReport(f"--simulated {simulation} holds no verdicts; velo-sim experiment NAME --output {simulation} makes them")
    if not found and not verdicts:
        raise NothingToReport(f"{directory} holds no experiment; velo-measure papers run NAME --output {directory} makes one")
    order = list(BY_NAME)
    found.sort(key=lambda pair: order.index(pair[1]["name"]) if pair[1]["name"] in order else len(order))
    target.write_text(_document(found, simulated.section(verdicts)), encoding="utf-8")
    return len(found) + len(verdicts)


def _load(path):
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != output.VERSION:
            raise NothingToReport(f"{path} has version {document['version']}, this velo-measure reads {output.VERSION}")
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise NothingToReport(f"{path} is damaged: {error!r}; run that experiment again") from error
    return document


def _document(found, more):
    body = "".join(_section(directory, result) for directory, result in found)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Velo: laboratory of flow control</title>
<style>
{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
<h1>Laboratory of flow control</h1>
<p>What the papers on credit flow control saw on their clusters, and whether this machine shows it.
{_text(machine.line(machine.describe()))}. Written {time.strftime("%Y-%m-%d %H:%M")}.</p>
{_overview(found)}
{body}{more}</main>
</body>
</html>
"""


def _overview(found):
    rows = []
    for _, result in found:
        kinds = {kind: [v["status"] for v in result["verdicts"] if v["kind"] == kind] for kind in (PREDICTED, FITTED)}
        counts = "; ".join(f"{kind}: " + ", ".join(f"{found.count(status)} {status}" for status in _CLASSES if status in found)
                           for kind, found in kinds.items() if found)
        rows.append(f'<tr><td><a href="#{_anchor(result)}">{_text(result["name"])}</a></td><td>{_text(result["title"])}</td>'
                    f'<td>{_text(counts or "skipped")}</td></tr>')
    return ('<div class="wide"><table class="overview"><thead><tr><th>experiment</th><th></th><th>statements of the paper</th></tr>'
            f'</thead><tbody>{"".join(rows)}</tbody></table></div>')


def _anchor(result):
    return "e-" + result["name"].replace(".", "-")


def _section(directory, result):
    parts = [
        f'<section id="{_anchor(result)}">',
        f'<h2>{_text(result["name"])} {_text(result["title"])}</h2>',
        f'<p class="source">{_text(result["source"])}. {_text(result["settings"]["scale"])}. Run {_text(result["when"])}.</p>',
        f'<blockquote>{_text(result["statement"])}</blockquote>',
        _verdicts(result),
        _skipped(result),
        _failures(result),
        _plot(directory, result),
        _table(directory),
        "</section>\n",
    ]
    return "\n".join(part for part in parts if part)


def _verdicts(result):
    items = [f'<li><span class="badge {_CLASSES[v["status"]]}">{_text(v["status"])}</span> {_text(v["statement"])} ({_text(v["kind"])})'
             f'<br><span class="because">{_text(v["because"])}</span></li>' for v in result["verdicts"]]
    return f'<ul class="verdicts">{"".join(items)}</ul>' if items else ""


def _skipped(result):
    return "".join(f'<p class="note">Skipped: {_text(reason)}.</p>' for reason in result["skipped"])


def _failures(result):
    failed = [run for run in result["runs"] if run["failure"]]
    items = "".join(f'<li>{_text(run["failure"])}<br><code>{_text(run["command"])}</code></li>' for run in failed)
    return f'<p class="note">{len(failed)} runs failed:</p><ul>{items}</ul>' if failed else ""


def _plot(directory, result):
    path = directory / output.SVG
    if not path.exists():
        return ""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    alt = f"Plot of experiment {result['name']}: {result['title']}; its data is in the table below"
    return f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{_text(alt)}"></figure>'


def _table(directory):
    path = directory / output.DATA
    if not path.exists():
        return ""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in _COLUMNS if any(row.get(column) for row in rows)]
    head = "".join(f"<th>{_text(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_text(_rounded(row.get(column) or ''))}</td>" for column in columns) + "</tr>"
                   for row in rows)
    return (f'<details><summary>Data, {len(rows)} lines</summary><div class="wide"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div></details>")


def _rounded(text):
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.0f}" if number == int(number) else f"{number:.2f}"


def _text(value):
    return html.escape(str(value))

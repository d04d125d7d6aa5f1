"""What velo-sim has written, for the report: each experiment's verdict and plot."""

import base64
import html
import re

_VERDICT = "-verdict.txt"
_CLASSES = {"HOLDS": "shown", "DOES NOT HOLD": "not-shown", "NOT MEASURED": "open"}
_FINDING = re.compile(r"(HOLDS|DOES NOT HOLD|NOT MEASURED) \((\w+)\): (.*)")


def find(directory):
    return sorted(directory.glob(f"*{_VERDICT}"))


def section(verdicts):
    return "<h1>The same policies, simulated</h1>\n" + "\n".join(_experiment(path) for path in verdicts) if verdicts else ""


def _experiment(path):
    name = path.name.removesuffix(_VERDICT)
    return f'<section id="s-{_text(name.replace(".", "-"))}"><h2>velo-sim {_text(name)}</h2>{_verdicts(path)}{_plot(path, name)}</section>'


def _verdicts(path):
    items = "".join(_line(line) for line in path.read_text(encoding="utf-8").splitlines())
    return f'<ul class="verdicts">{items}</ul>'


def _line(line):
    if found := _FINDING.fullmatch(line):
        words, kind, statement = found.groups()
        return f'<li><span class="badge {_CLASSES[words]}">{words.lower()}</span> {_text(statement)} ({kind})</li>'
    return f'<li class="because">{_text(line.strip())}</li>'


def _plot(path, name):
    picture = path.with_name(f"{name}.png")
    if not picture.exists():
        return ""
    data = base64.b64encode(picture.read_bytes()).decode("ascii")
    return f'<figure><img src="data:image/png;base64,{data}" alt="Plot of velo-sim {_text(name)}"></figure>'


def _text(value):
    return html.escape(str(value))

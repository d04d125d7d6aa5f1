"""Pages of docs/measured out of results of velo-measure transports: one for each processor and distance of two ranks, with --collectives
and --between-nodes too, one for each number of ranks beyond, and one more for whole programs.

Results of one kind, one processor and one build of Velo are taken together, block by block. A page of the same title is
written anew, all others stay; README.md there gets a summary of the pages that were made so, and a list of the others. What has too few
blocks gets no page. Without results README.md alone is written anew.
"""

import json
import pathlib
import re
import statistics
import textwrap
from dataclasses import dataclass

from .. import command
from ..command import EXIT_FAILED, EXIT_OK, Trouble
from ..measuring import Point
from ..versus import summary
from ..versus.contestants import Contestant
from ..versus.patterns import Case, goal_at, known, program, size_text
from ..versus.report import time_text
from ..versus.runner import Result

DOCUMENTS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "measured"
_FORMAT = 2
_LAYERS = ("btl", "mtl")
# Of what is taken together.
_SAME_PARTS, _SAME_SETTINGS = ("commit", "velo", "open_mpi", "contestants"), ("window", "point_ms")
_PARTS = {*_SAME_PARTS, "settings", "machine", "date", "runs"}
_HEADINGS = ("", "size", "BTL, µs", "MTL, µs", "best other, µs", "BTL", "goal", "MTL", "goal", "blocks")
# A program is to take no longer than this with the best of the others, and less time where that one communicates for more than a tenth of it.
_PROGRAM_RATIO, _PROGRAM_SHARE_PERCENT = 1.02, 10


@dataclass
class Series:
    """What was measured in one way, on one processor with one build of everything."""

    head: dict
    dates: list
    contestants: list
    results: list
    min_blocks: int
    complete: bool
    patterns: tuple  # in the order of the rows, programs after them

    def __post_init__(self):
        self.velos = {c.layer: c.name for c in reversed(self.contestants) if c.is_velo}
        sizes = {}
        for result in self.results:
            sizes.setdefault((result.case.ranks, result.case.pattern), set()).update(result.case.sizes)
        order = [*self.patterns, *dict.fromkeys(pattern for _, pattern in sizes if pattern.program)]
        cases = {(ranks, pattern): Case(ranks, pattern, tuple(sorted(own)))
                 for (ranks, pattern), own in sorted(sizes.items(), key=lambda entry: (entry[0][0], order.index(entry[0][1])))}
        for result in self.results:
            result.case = cases[result.case.ranks, result.case.pattern]
        # Velo's variants and other builds take part on the page of programs alone.
        usual = [c for c in self.contestants if not c.is_velo or self.velos[c.layer] == c.name]
        self.lines = [line for programs, shown in ((False, usual), (True, self.contestants))
                      for line in summary.summarise(self.results, [case for case in cases.values() if _of_programs(case) == programs], shown,
                                                    self.min_blocks)]

    def pages(self):
        """(ranks, distance) of each page that there may be."""
        return list(dict.fromkeys((line.case.ranks, line.distance) for line in self.lines))

    def title(self, ranks, distance):
        settings = self.head["settings"]
        of = [", collectives"] if settings.get("collectives") else []
        of += [" between nodes" if of else ", between nodes"] if settings["between_nodes"] else []
        return "".join([self.head["machine"]["cpu"], *of, f", {distance or ('two' if ranks == 2 else ranks)}" + ("" if distance else " ranks")])


def read(paths):
    """The results of files, taken together."""
    found = {}
    for path in paths:
        try:
            document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise Trouble(f"{path}: {error}") from error
        if not isinstance(document, dict) or document.get("version") != _FORMAT or not _PARTS <= document.keys():
            raise Trouble(f"{path} is no transports.json of this version")
        settings = document["settings"]
        others = found.setdefault((document["machine"]["cpu"], bool(settings.get("collectives")), settings["between_nodes"]), [])
        for other, same in others:
            if same == document:
                raise Trouble(f"{path} and {other} hold the same results: give one of them")
        others.append((path, document))
    return [_series(documents) for documents in found.values()]


def _same(document):
    """What documents that are taken together have in common."""
    return {what: document[what] for what in _SAME_PARTS} | {what: document["settings"].get(what) for what in _SAME_SETTINGS}


def _series(documents):
    _, head = documents[0]
    same = _same(head)
    for path, document in documents[1:]:
        for what, value in _same(document).items():
            if value != same[what]:
                raise Trouble(f"{path} and {documents[0][0]} are of one processor and differ in {what}: give them one after the other")
    contestants = [Contestant(entry["name"], "", (), (), entry["layer"], mpi=entry.get("mpi", "openmpi")) for entry in head["contestants"]]
    by_name = {c.name: c for c in contestants}
    patterns = known(head["settings"].get("collectives"), head["settings"]["between_nodes"])
    results = [_result(run, by_name, patterns, number) for number, (_, document) in enumerate(documents) for run in document["runs"]]
    return Series(head, [document["date"] for _, document in documents], contestants, results,
                  max(document["settings"]["min_blocks"] for _, document in documents),
                  all(document.get("complete", True) for _, document in documents), tuple(patterns.values()))


def _result(run, contestants, patterns, document):
    sizes = {int(size): Point(**time) for size, time in run["times"].items()}
    pattern = program(run["pattern"], run["program"]) if run.get("program") else patterns[run["pattern"]]
    return Result(contestants[run["contestant"]], Case(run["ranks"], pattern, tuple(sizes)), (document, run["round"]), run["command"], times=sizes,
                  lines={int(size): ends for size, ends in run["lines"].items()}, share_percent=run.get("share_percent"), failure=run["failure"])


def pages(series, ranks, distance):
    """Name and text of that of the patterns and of that of the programs; a page on which nothing has enough blocks is left out."""
    lines = [line for line in series.lines if (line.case.ranks, line.distance) == (ranks, distance)]
    title = series.title(ranks, distance)
    for programs, make, what in ((False, _patterns_page, ""), (True, _programs_page, ": programs")):
        own = [line for line in lines if _of_programs(line.case) == programs]
        if any(line.ratio(velo) for line in own for velo in line.layers):
            yield re.sub(r"[^a-z0-9]+", "-", (title + what).lower()).strip("-") + ".md", f"# {title}{what}\n\n{make(series, own)}\n"


def _of_programs(case):
    return bool(case.pattern.program)


def _patterns_page(series, lines):
    rows, tally = [], {layer: [0, 0] for layer in _LAYERS}
    for line in lines:
        rows.append(_row(series, line, tally))
    met = "; ".join(f"{layer.upper()} {good} of {all_}" for layer, (good, all_) in tally.items() if all_)
    how = (f"Contestants take turns, each block about {series.head['settings']['point_ms']} ms; {_medians(series, lines)} "
           f"BTL and MTL: time of Velo / time of the best of the others ({_others(series)}).")
    return "\n".join([_about(series, lines, how), "", f"Goals met: {met or 'none to compare with'}.", "", *_table(_HEADINGS, rows)])


def _medians(series, lines):
    return (f"times are medians over blocks{' of this distance' if lines[0].distance else ''}, of which each contestant has at least "
            f"{series.min_blocks}, or there is no ratio.")


def _others(series):
    return ", ".join(c.name for c in series.contestants if not c.is_velo)


def _table(headings, rows):
    return ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings), *("| " + " | ".join(row) + " |" for row in rows)]


def _programs_page(series, lines):
    velos = list(lines[0].layers)
    names = [c.name for c in series.contestants]
    counts = [f"{velo} {sum(_holds(line, velo) for line in judged)} of {len(judged)}"
              for velo in velos if (judged := [line for line in lines if line.ratio(velo) is not None or velo in line.failed])]
    how = (f"Contestants take turns, a block is a run from MPI_Init to MPI_Finalize; {_medians(series, lines)} For each "
           f"contestant: its time / that of the best of the others ({_others(series)}), and the share of its time in calls that communicate. "
           f"Aimed at: {_PROGRAM_RATIO} at most, and below 1 where the best of the others communicates for more than "
           f"{_PROGRAM_SHARE_PERCENT} % of its time; what misses that is bold. The runs of one contestant lie "
           f"{statistics.median(summary.noise(lines).values()):.0f} % apart (most - least, at the median): what differs by much less says nothing.")
    commands = [f"- {entry['name']}: `{entry['command'].removesuffix(' measure')}`" for entry in series.head["contestants"]]
    return "\n".join([_about(series, lines, how), "", f"Aim met: {'; '.join(counts)}.", "",
                      *_table(["", "best other", *names, "blocks"], [_program_row(line, names) for line in lines]), "", *commands])


def _program_row(line, names):
    best = line.best_other()
    cells = [f"{line.case.title()} `{' '.join(line.case.pattern.program)}`", f"{time_text(line, best)} {best}" if best else "-"]
    cells += [_program_cell(line, name, best) for name in names]
    return [*cells, _blocks(line)]


def _program_cell(line, name, best):
    if name in line.failed:
        return "**FAILED**"
    if name not in line.usec:
        return "-"
    ratio = f"{line.usec[name] / line.usec[best]:.2f}" if best and name not in line.few else time_text(line, name)
    bold = "**" if name in line.layers and line.ratio(name) is not None and not _holds(line, name) else ""
    return f"{bold}{ratio}{bold}, {line.share_percent[name]:.0f} %"


def _holds(line, velo):
    if velo in line.failed:
        return False
    communicates = line.share_percent[line.best_other()] > _PROGRAM_SHARE_PERCENT
    return line.ratio(velo) < 1 if communicates else line.ratio(velo) <= _PROGRAM_RATIO


def _about(series, lines, how):
    head, machine = series.head, series.head["machine"]
    ranks, distance = lines[0].case.ranks, lines[0].distance
    usec = sorted(usec for result in series.results for size, ends in result.lines.items()
                  if (result.case.ranks, result.distance(size)) == (ranks, distance) for usec, _ in ends)
    line = f" A cache line took {usec[0]:.3f} to {usec[-1]:.3f} µs one way, {statistics.median(usec):.3f} at the median." if usec else ""
    load = (" **Measured under load.**" if machine["load"] > 0.5 else "") + ("" if series.complete else " **Ended before all was measured.**")
    libraries = ", ".join(dict.fromkeys(entry["library"] for entry in head["contestants"]))
    ucx = f", UCX {machine['ucx']}" if machine["ucx"] else ""
    return textwrap.fill(
        f"{_where(series, ranks)}, `velo-measure transports` on {', '.join(series.dates)}; Velo {head['velo']}, commit {head['commit'] or 'unknown'}; {libraries}{ucx}; "
        f"{machine['kernel']}, {machine['system']}.{line}{load} {how}",
        120, break_on_hyphens=False)


def _where(series, ranks):
    count, cores = "Two" if ranks == 2 else ranks, series.head["machine"]["usable_cores"]
    if series.head["settings"]["between_nodes"]:
        return f"{count} ranks on nodes by turns"
    return f"{count} bound ranks" if ranks <= cores else f"{count} ranks on {cores} processors, not bound"


def _row(series, line, tally):
    best = line.best_other()
    cells = [line.case.title(), size_text(line.size)]
    cells += [time_text(line, series.velos.get(layer)) for layer in _LAYERS] + [f"{time_text(line, best)} {best}" if best else "-"]
    for layer in _LAYERS:
        velo = series.velos.get(layer)
        cells += _judged(line, velo, tally[layer]) if velo else ["-", "-"]
    return [*cells, _blocks(line)]


def _blocks(line):
    fewest = min(line.blocks.values(), default=0)
    return f"{fewest}, too few" if line.few else str(fewest)


def _judged(line, velo, tally):
    """The ratio, and the goal with its verdict."""
    ratio, goal = line.ratio(velo), line.goal(velo)
    shown = "-" if ratio is None else f"{ratio:.2f}"
    if goal is None:
        return [shown, ""]
    wanted, there = goal
    opponents = goal_at(line.case, line.size).opponents(line.layers[velo], line.distance)
    text = f"{wanted:.2f}" + (f" of {line.best_other(opponents) or opponents[0]}" if opponents else "")
    if velo in line.failed:
        there = float("inf")
    if there is None:
        return [shown, text]
    tally[0] += there <= wanted
    tally[1] += 1
    which = f" ({there:.2f})" if opponents and there != ratio else ""
    return [shown, f"{text}{which}, {'met' if there <= wanted else '**missed**'}"]


_SUMMARY_HEAD = ("| | | BTL, median | best | worst | MTL, median | best | worst |", "|---|---|---|---|---|---|---|---|")
_MARKS = ("<!-- summary -->", "<!-- end of the summary -->")


def write_list(directory):
    """The summary between its marks, and the list of the pages that it does not link, in place of those in README.md."""
    readme = directory / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else "# Measured\n"
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.md")) if path.name != readme.name}
    before, begin, rest = re.sub(r"^- \[.*\n", "", text, flags=re.MULTILINE).rstrip().partition(_MARKS[0])
    summary_text = begin and begin + "\n" + _summary(pages) + _MARKS[1]
    entries = [f"- [{_title(page)}]({path.name})\n" for path, page in pages.items() if f"({path.name})" not in summary_text]
    text = before + summary_text + rest.partition(_MARKS[1])[2] + "\n\n" + "".join(entries)
    readme.write_text(text.rstrip() + "\n", encoding="utf-8")


def _title(page):
    return page.partition("\n")[0].lstrip("# ")


def _summary(pages):
    """For each processor a table, with a line for each class of each page that has ratios."""
    processors = {}
    for path, page in pages.items():
        processor, _, where = _title(page).partition("), ")
        if ratios := _ratios(page, "collectives" in where):
            name = re.sub(r"\(R\)| Processor|, virtual", "", f"{processor})")
            lines = processors.setdefault(name, [])
            for number, (group, layers) in enumerate(ratios.items()):
                cells = [cell for layer in _LAYERS for cell in _spread(layers[layer])]
                lines.append("| " + " | ".join([f"[{where}]({path.name})" if number == 0 else "", group, *cells]) + " |")
    return "".join(f"\n### {name}\n\n" + "\n".join((*_SUMMARY_HEAD, *lines)) + "\n" for name, lines in processors.items()) + "\n"


def _ratios(page, of_collectives):
    """(ratio, row) of each layer by class, out of the table of a page."""
    found, columns = {}, {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if columns and len(cells) < max(columns.values()) + 1:
            continue
        if cells[1:2] == ["size"] and "goal" in cells:
            columns = {"btl": cells.index("BTL"), "mtl": cells.index("MTL")}
        elif cells[1:2] == ["best other"] and {"velo", "mtl"} <= set(cells):
            columns = {"btl": cells.index("velo"), "mtl": cells.index("mtl")}
        elif columns:
            of_programs = not re.match(r"[\d.]+ [KM]?i?B$", cells[1])
            pattern = "" if cells[0].startswith("ping-pong") else cells[0].partition(", ")[0] + " "
            row = cells[0].partition(" `")[0] if of_programs else pattern + cells[1]
            for layer, column in columns.items():
                if ratio := re.match(r"\**(\d+\.\d+)\**(?:,|$)", cells[column]):
                    group = found.setdefault("programs" if of_programs else _class_of(cells[0], of_collectives), {each: [] for each in _LAYERS})
                    group[layer].append((float(ratio[1]), row))
    return found


def _class_of(pattern, of_collectives):
    if of_collectives:
        return "non-blocking" if re.match("I[a-z]", pattern) else "blocking"
    if "streaming" in pattern:
        return "streaming, one way and both"
    return re.sub(r", \d+ ranks$", "", pattern) if pattern.startswith("ping-pong") else "Exchange, Alltoall, Allreduce"


def _spread(ratios):
    if not ratios:
        return ["-"] * 3
    extremes = [f"{ratio:.2f} ({row})" for ratio, row in (min(ratios), max(ratios))]
    return [f"{statistics.median(ratio for ratio, _ in ratios):.2f}", *extremes]


def main(arguments):
    parser = command.parser("measured", __doc__)
    parser.add_argument("results", nargs="*", type=pathlib.Path, metavar="RESULT.json", help="transports.json")
    parser.add_argument("--into", type=pathlib.Path, default=DOCUMENTS, metavar="DIR", help="default docs/measured")
    return command.run("measured", _write, parser.parse_args(arguments))


def _write(options):
    written = 0
    for series in read(options.results):
        for ranks, distance in series.pages():
            made = list(pages(series, ranks, distance))
            if not made:
                counts = [min(line.blocks.values(), default=0) for line in series.lines if (line.case.ranks, line.distance) == (ranks, distance)]
                print(f"{series.title(ranks, distance)}: at most {max(counts)} blocks of everybody, fewer than "
                      f"{series.min_blocks}, or nobody to compare with: no page")
                continue
            options.into.mkdir(parents=True, exist_ok=True)
            for name, text in made:
                (options.into / name).write_text(text, encoding="utf-8")
                print(f"wrote {options.into / name}")
            written += len(made)
    if options.results and not written:
        print("nothing has enough blocks of two contestants to compare: no page was written")
        return EXIT_FAILED
    write_list(options.into)
    return EXIT_OK

"""Tables as text."""


def grid_text(headings, rows, aligns, blocks=None):
    """The table with its columns aligned (`aligns`: < or >); an empty line where `blocks`, one for each row, changes."""
    widths = [max(len(row[i]) for row in [headings] + rows) for i in range(len(headings))]

    def render(row):
        return "  ".join(f"{cell:{align}{width}}" for cell, align, width in zip(row, aligns, widths)).rstrip()

    lines = [render(headings), "  ".join("-" * width for width in widths)]
    for i, row in enumerate(rows):
        if blocks and i > 0 and blocks[i] != blocks[i - 1]:
            lines.append("")
        lines.append(render(row))
    return "\n".join(lines)

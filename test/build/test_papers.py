"""docs/papers.md says what the lists of experiments say."""

from velo.dev import papers


def test_the_page_of_the_papers_is_as_the_experiments_are():
    assert papers.PAGE.read_text(encoding="utf-8") == papers.text(), "contrib/dev/papers writes it anew"

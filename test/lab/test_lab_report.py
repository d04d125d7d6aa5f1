"""The HTML report."""

import re
import subprocess
import sys

import pytest

@pytest.fixture
def report(lab, velo_lab, tmp_path):
    """The path of a report on three experiments: with a failure, skipped, and one that is not shown."""
    lab("5.5", "--quick", "--slots", "16", plots=True, FAKE_FAIL="static:16")
    lab("7.2")
    lab("6.8", "--quick", plots=True, FAKE_FLAT="1")
    command = [sys.executable, *map(str, velo_lab), "report", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "3 experiments" in done.stdout
    return tmp_path / "out" / "report.html"


def test_report_holds_everything_and_loads_nothing(report):
    text = report.read_text()
    assert [name for name in ("5.5", "6.8", "7.2") if f"<h2>{name} " in text] == ["5.5", "6.8", "7.2"]
    assert text.index("<h2>5.5") < text.index("<h2>6.8") < text.index("<h2>7.2")
    assert text.count('<img src="data:image/svg+xml;base64,') == 2
    assert "Skipped: this plugin has no parameter btl_velo_limic" in text
    assert "FAILED" not in text and "runs failed:" in text and "exit status 1" in text
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert not re.search(r"@import|url\(|<script|<link rel=\"stylesheet", text)


def test_report_says_when_there_is_nothing(velo_lab, tmp_path):
    done = subprocess.run([sys.executable, *map(str, velo_lab), "report", str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2
    assert f"{tmp_path} holds no experiment; velo-measure papers run NAME" in done.stderr


def test_damaged_result_is_named(velo_lab, tmp_path):
    (tmp_path / "5.5").mkdir()
    (tmp_path / "5.5" / "result.json").write_text('{"version": 1, "na')
    done = subprocess.run([sys.executable, *map(str, velo_lab), "report", str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2
    assert "5.5/result.json is damaged" in done.stderr

"""The HTML report, as text and in a headless browser."""

import html
import json
import re
import shutil
import subprocess
import sys

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
BROWSER_SECONDS = 120

# Looks at what a reader would see: the contrast of every text, the plots, and what the page loads and overflows.
PROBE = """
function channels(text) { return text.match(/[\\d.]+/g).map(Number); }
function luminance(rgb) {
  const [r, g, b] = rgb.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function backdrop(node) {
  for (; node; node = node.parentElement) {
    const colour = channels(getComputedStyle(node).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
}
addEventListener('load', () => {
  let worst = [99, ''];
  for (const node of document.querySelectorAll('main *')) {
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const [a, b] = [luminance(channels(getComputedStyle(node).color)), luminance(backdrop(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, node.textContent.slice(0, 60)];
  }
  const images = [...document.images];
  document.body.dataset.seen = JSON.stringify({
    dark: matchMedia('(prefers-color-scheme: dark)').matches, contrast: worst, images: images.length,
    drawn: images.filter(i => i.naturalWidth > 300 && i.alt).length,
    loaded: performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:')),
    wide: document.documentElement.scrollWidth - innerWidth, page: channels(getComputedStyle(document.body).backgroundColor)});
});
"""


@pytest.fixture
def report(lab, velo_lab, tmp_path):
    """The path of a report on three experiments: with a failure, skipped, and one that is not shown."""
    lab("5.5", "--quick", FAKE_FAIL="static:16")
    lab("7.2")
    lab("6.8", "--quick", FAKE_FLAT="1")
    command = [sys.executable, str(velo_lab), "report", str(tmp_path / "out")]
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
    done = subprocess.run([sys.executable, str(velo_lab), "report", str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2
    assert f"{tmp_path} holds no experiment; velo-lab run NAME" in done.stderr


def test_damaged_result_is_named(velo_lab, tmp_path):
    (tmp_path / "5.5").mkdir()
    (tmp_path / "5.5" / "result.json").write_text('{"version": 1, "na')
    done = subprocess.run([sys.executable, str(velo_lab), "report", str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2
    assert "5.5/result.json is damaged" in done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500])
def test_report_is_legible_in_a_browser(report, tmp_path, scheme, width):
    seen = look(report, tmp_path, scheme, width)
    assert seen["dark"] == (scheme == "dark")
    assert (sum(seen["page"][:3]) < 200) == (scheme == "dark")
    assert seen["contrast"][0] >= 4.5, seen["contrast"]
    assert seen["images"] == seen["drawn"] == 2
    assert seen["loaded"] == []
    assert seen["wide"] <= 0


def look(report, tmp_path, scheme, width):
    probed = tmp_path / "probed.html"
    text = report.read_text().replace("<details>", "<details open>").replace("</head>", f"<script>{PROBE}</script></head>")
    probed.write_text(text)
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={tmp_path / 'profile'}", "--no-first-run", "--disable-background-networking",
               f"--window-size={width},900", f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
               "--virtual-time-budget=20000", "--dump-dom", probed.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BROWSER_SECONDS, check=False)
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, done.stderr[-3000:]
    return json.loads(html.unescape(found[1]))

"""The thesis's protocol: velo-measure policies --thesis."""

from pathlib import Path

# Also for mpirun --tune.
FILE = Path(__file__).resolve().with_name("thesis.conf")
# "Very large buffers": the reference waits for no slot.
REFERENCE_SLOTS = 8192


def parameters():
    """(name, value) pairs of MCA parameters."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [tuple(part.strip() for part in line.split("=")) for line in lines if line and not line.startswith("#")]

"""What the installed plugin offers, as ompi_info tells it."""

import re
from dataclasses import dataclass

from .process import environment, run_limited
from .programs import NotFound

_ASK_SECONDS = 60
_MARK = "mca:btl:velo:"
_POLICY = re.compile(r"^mca:btl:velo:param:btl_velo_flow_control:enumerator:value:\d+:(\S+)$", re.MULTILINE)
_PARAMETER = re.compile(r"^mca:btl:velo:param:btl_velo_(\w+):value:(.*)$", re.MULTILINE)
_DEFAULT = re.compile(r"^mca:btl:velo:param:btl_velo_(\w+):source:default$", re.MULTILINE)
_VERSION = re.compile(r'^mca:btl:velo:version:"component:([^"]+)"', re.MULTILINE)


class Unavailable(Exception):
    """The plugin does not have what is needed; the text says what."""


@dataclass(frozen=True)
class Plugin:
    version: str
    policies: tuple
    parameters: dict  # values, by names without btl_velo_
    chosen: frozenset  # those of them that files or the environment set

    def offers(self, parameter):
        return parameter in self.parameters

    def require(self, *parameters):
        missing = [name for name in parameters if not self.offers(name)]
        if missing:
            names = ", ".join(f"btl_velo_{name}" for name in missing)
            raise Unavailable(f"this plugin has no parameter {names}")

    def missing_policies(self, wanted):
        return [policy for policy in wanted if policy not in self.policies]


def ask(ompi_info):
    """The plugin that this Open MPI finds. Raises NotFound."""
    command = [ompi_info, "--param", "btl", "velo", "--level", "9", "--parsable"]
    try:
        finished = run_limited(command, environment(), _ASK_SECONDS)
    except OSError as error:
        raise NotFound(f"cannot start {ompi_info}: {error}") from error
    if _MARK not in finished.stdout:
        raise NotFound(f"{ompi_info} finds no btl component velo; run make install, and ompi_info --show-failed if that "
                       "is done")
    return read(finished.stdout)


def read(text):
    version = _VERSION.search(text)
    parameters = dict(_PARAMETER.findall(text))
    return Plugin(version[1] if version else "unknown", tuple(_POLICY.findall(text)), parameters, frozenset(parameters) - set(_DEFAULT.findall(text)))

# SPDX-License-Identifier: BSD-3-Clause

import re
import shlex

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


class Velo(AutotoolsPackage):
    """VELO-style messaging with credit flow control as a plugin of Open MPI: a transport (BTL), in 4.1
    message matching (MTL), and collective operations, inside a node and between nodes."""

    homepage = "@HOMEPAGE@"
    url = "@URL@"

    license("BSD-3-Clause")

    version("@VERSION@", sha256="@SHA256@")

    variant("ucx", default=True, description="Reach processes on other nodes")
    variant("xpmem", default=False, description="Move large messages by XPMEM, where its kernel module is")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build")
    depends_on("python@3.9:", type="run")
    depends_on("py-matplotlib", type="run")
    depends_on("openmpi@4.1.4:4.1.8,5.0.3:5.0.8")
    depends_on("pmix", when="^openmpi@5:~internal-pmix")
    depends_on("hwloc@2:")
    depends_on("ucx@1.11:", when="+ucx")
    depends_on("xpmem", when="+xpmem")

    conflicts("%gcc@:11", msg="Velo is written in C++20")

    # An Open MPI of Spack has no headers of components; those of its sources are used, of which nothing is built.
    for _version, _sha256 in {
        "4.1.4": "92912e175fd1234368c8730c03f4996fe5942e7479bb1d10059405e7f2b3930d",
        "4.1.5": "a640986bc257389dd379886fdae6264c8cfa56bc98b71ce3ae3dfbd8ce61dbe3",
        "4.1.6": "f740994485516deb63b5311af122c265179f5328a0d857a567b85db00b11e415",
        "4.1.7": "54a33cb7ad81ff0976f15a6cc8003c3922f0f3d8ceed14e1813ef3603f22cd34",
        "4.1.8": "466f68e3132a1dc02710cc2011fafced8336d98359fa2dae4dddcfd5719f12a9",
        "5.0.3": "990582f206b3ab32e938aa31bbf07c639368e4405dca196fabe7f0f76eeda90b",
        "5.0.4": "64526852cdd88b2d30e022087c16ab3e03806c451b10cd691d5c1ac887d8ef9d",
        "5.0.5": "6588d57c0a4bd299a24103f4e196051b29e8b55fbda49e11d5b3d32030a32776",
        "5.0.6": "bd4183fcbc43477c254799b429df1a6e576c042e74a2d2f8b37d537b2ff98157",
        "5.0.7": "119f2009936a403334d0df3c0d74d5595a32d99497f9b1d41e90019fee2fc2dd",
        "5.0.8": "53131e1a57e7270f645707f8b0b65ba56048f5b5ac3f68faabed3eb0d710e449",
    }.items():
        resource(
            name=f"openmpi-{_version}",
            url=f"https://download.open-mpi.org/release/open-mpi/v{_version[:3]}/openmpi-{_version}.tar.bz2",
            sha256=_sha256,
            placement="open-mpi",
            when=f"^openmpi@{_version}",
        )

    def _components(self):
        """Open MPI's own directory of them belongs to another package."""
        return join_path(self.prefix.lib, "openmpi")

    @run_before("configure")
    def configure_open_mpi(self):
        """As the installed one was."""
        told = Executable(self.spec["openmpi"].prefix.bin.ompi_info)("--parsable", "--config", output=str)
        with working_dir(join_path(self.stage.source_path, "open-mpi")):
            Executable("./configure")(*shlex.split(re.search(r"^config:cli:(.*)$", told, re.MULTILINE).group(1)))

    def configure_args(self):
        return [
            f"MPICC={self.spec['openmpi'].prefix.bin.mpicc}",
            f"OMPI_INFO={self.spec['openmpi'].prefix.bin.ompi_info}",
            f"--with-ompi-source={join_path(self.stage.source_path, 'open-mpi')}",
            f"--with-component-dir={self._components()}",
            "--with-ucx" if self.spec.satisfies("+ucx") else "--without-ucx",
            f"--with-xpmem={self.spec['xpmem'].prefix}" if self.spec.satisfies("+xpmem") else "--without-xpmem",
        ]

    @run_after("install")
    def use_own_python(self):
        scripts = [path for path in find(self.prefix.bin, "velo-*") if is_script(path)]
        filter_file("^#!/usr/bin/python3$", f"#!{self.spec['python'].command.path}", *scripts)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        own = join_path(self.spec["openmpi"].prefix.lib, "openmpi")
        env.set("OMPI_MCA_mca_base_component_path", f"{self._components()}:{own}")

#!/usr/bin/python3 -S
"""Stands in for ompi_info: a plugin with the policies and parameters that FAKE_POLICIES and FAKE_PARAMETERS name (NAME or NAME=VALUE),
in an Open MPI of FAKE_VERSION that looks for components in FAKE_PATH."""

import os

POLICIES = os.environ.get("FAKE_POLICIES", "none,static,dynamic").split(",")
PARAMETERS = os.environ.get("FAKE_PARAMETERS", "slots_per_peer,credit_slots,piggyback,packet_trains,by_reference").split(",")

for key, name in (("ompi:version:full", "FAKE_VERSION"), ("mca:mca:base:param:mca_base_component_path:value", "FAKE_PATH")):
    if name in os.environ:
        print(f"{key}:{os.environ[name]}")
for component in filter(None, os.environ.get("FAKE_COMPONENTS", "").split(",")):
    print(f'mca:{component}:version:"component:4.1.4"')
if "FAKE_NO_PLUGIN" not in os.environ:
    print('mca:btl:velo:version:"component:4.1.4"')
    print("mca:btl:velo:param:btl_velo_flow_control:value:dynamic")
    for number, name in enumerate(POLICIES):
        print(f"mca:btl:velo:param:btl_velo_flow_control:enumerator:value:{number}:{name}")
    for parameter in PARAMETERS:
        name, _, value = parameter.partition("=")
        print(f"mca:btl:velo:param:btl_velo_{name}:value:{value or 1}")

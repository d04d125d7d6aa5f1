#!/usr/bin/python3
"""Stands in for ompi_info: a plugin with the policies and parameters that FAKE_POLICIES and FAKE_PARAMETERS name."""

import os

POLICIES = os.environ.get("FAKE_POLICIES", "none,static,dynamic").split(",")
PARAMETERS = os.environ.get("FAKE_PARAMETERS", "slots_per_peer,credit_slots,piggyback,packet_trains,by_reference").split(",")

for component in filter(None, os.environ.get("FAKE_COMPONENTS", "").split(",")):
    print(f'mca:{component}:version:"component:4.1.4"')
if "FAKE_NO_PLUGIN" not in os.environ:
    print('mca:btl:velo:version:"component:4.1.4"')
    print("mca:btl:velo:param:btl_velo_flow_control:value:dynamic")
    for number, name in enumerate(POLICIES):
        print(f"mca:btl:velo:param:btl_velo_flow_control:enumerator:value:{number}:{name}")
    for name in PARAMETERS:
        print(f"mca:btl:velo:param:btl_velo_{name}:value:1")

"""contrib/nodes: the nodes are apart, reach each other, can be disturbed and leave nothing behind."""

import os
import pathlib
import signal
import subprocess
import time

from nodes import NODES, call

# Sends datagrams from node1 to an echo on node2 and prints how many came back.
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.2", 7000))
while True:
    data, sender = s.recvfrom(100)
    s.sendto(data, sender)
"""
COUNT = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.05)
back = 0
for i in range(200):
    try:
        s.sendto(b"%d" % i, ("10.77.0.2", 7000))
        back += s.recv(100) == b"%d" % i
    except OSError:
        pass
print(back)
"""


def leftovers(name):
    return list(pathlib.Path("/tmp").glob(f"velo-nodes-*-{name}"))


def sleepers(mark):
    """Processes whose command line has this word."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                found.append(entry.name)
        except OSError:
            pass
    return found


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "not within 20 s"
        time.sleep(0.02)


def test_a_node_has_its_own_name_address_and_shared_memory(bed):
    result = bed("exec", "node2", "--", "sh", "-c", "hostname; ip -br -4 addr show e0; ls -A /dev/shm")
    words = result.stdout.split()
    assert words[0] == "node2" and "10.77.0.2/24" in words and len(words) == 4, result.stdout + result.stderr


def test_the_agent_runs_a_command_on_another_node(nodes_permitted):
    result = call("run", "--", "sh", "-c", "$VELO_NODES/agent -x node2 hostname '&&' echo done; $VELO_NODES/agent node3 true")
    assert result.stdout.split() == ["node2", "done"]
    assert result.returncode == 255, "the agent must report that there is no node3"


def test_faults_come_and_go(bed):
    echo = subprocess.Popen([NODES, "exec", "--name", f"test{os.getpid()}", "node2", "--", "python3", "-c", ECHO])

    def replies():
        return int(bed("exec", "node1", "--", "python3", "-c", COUNT).stdout)

    try:
        until(lambda: replies() == 200)
        assert bed("fault", "node2", "loss", 30).returncode == 0
        assert 60 < replies() < 190
        assert bed("fault", "node2", "clear").returncode == 0
        assert replies() == 200
        assert bed("fault", "node2", "down").returncode == 0
        assert replies() == 0
        assert bed("fault", "node2", "up").returncode == 0
        until(lambda: replies() == 200)
    finally:
        echo.kill()
        echo.wait()


def test_the_rate_of_a_node_can_be_limited(bed):
    assert bed("fault", "node1", "rate", "100mbit").returncode == 0
    assert "100Mbit" in bed("exec", "node1", "--", "tc", "qdisc", "show", "dev", "e0").stdout
    assert bed("fault", "node1", "clear").returncode == 0
    assert "100Mbit" not in bed("exec", "node1", "--", "tc", "qdisc", "show", "dev", "e0").stdout


def test_the_exit_code_is_the_commands_and_nothing_stays(nodes_permitted):
    result = call("run", "--name", "codes", "--", "sh", "-c", "$VELO_NODES/agent node2 sleep 4711.1 & sleep 0.2; exit 7")
    assert result.returncode == 7, result.stderr
    assert not sleepers("4711.1") and not leftovers("codes")


def test_killing_the_script_ends_everything_on_the_nodes(nodes_permitted):
    script = subprocess.Popen([NODES, "run", "--name", "killed", "--", "sh", "-c",
                               "$VELO_NODES/agent node2 sleep 4711.2 & sleep 4711.2"], start_new_session=True)
    try:
        until(lambda: len(sleepers("4711.2")) >= 2)
        script.send_signal(signal.SIGKILL)
        script.wait()
        until(lambda: not sleepers("4711.2"))
    finally:
        script.kill()
        call("down", "--name", "killed")
    assert not leftovers("killed")


def test_a_second_set_of_the_same_name_is_refused(bed):
    result = bed("up")
    assert result.returncode == 1 and "choose another --name" in result.stderr
    assert bed("exec", "node1", "--", "true").returncode == 0, "the first set must not have suffered"

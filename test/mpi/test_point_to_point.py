"""What was sent leaves though its sender calls MPI no more."""

from flows import flows
from series import cases


def table(*rows):
    """{words: facts} for each (how, messages, size)."""
    return {("leaves", how, messages, size): {"received": messages} for how, messages, size in rows}


HERE = table(("send", 40, 8), ("gaps", 40, 8), ("gaps", 40, 900))
THERE = table(("send", 1, 8), ("send", 40, 8), ("send", 1, 100_000), ("gaps", 40, 8), ("gaps", 40, 3000), ("bsend", 40, 8))


@cases(HERE)
@flows(8, policies=("static", "dynamic"))
def test_what_was_sent_leaves_without_another_call(facts, flow, case):
    assert facts(np=2, params=flow.params) == HERE[case]


@cases(THERE)
def test_what_was_sent_leaves_for_another_node_without_another_call(facts, cluster, case):
    assert facts(np=2, prefix=cluster.prefix(2, 1)) == THERE[case]

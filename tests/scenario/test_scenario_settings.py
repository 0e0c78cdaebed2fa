"""Values of a scenario that are set from outside, and what becomes of its runs."""

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog, parse_settings
from scenario_texts import HEAD, write

TEXT = HEAD + "flows: [{name: a, cc: '{cc}'}, {name: b, cc: reno}]\nvary: {cc: [reno, cubic]}\nrun: x-{cc}\n"


def chosen(path, *words, **options):
    return catalog.select(str(path), settings=parse_settings(words), **options)


def test_values_are_replaced_by_their_place(tmp_path):
    path = write(tmp_path, TEXT)
    words = ["flows.1.cc=bbr", "network.rtt=40ms", "hosts.sysctl.net.ipv4.tcp_ecn=1", "measure.steady_state.window=5s"]
    first, second = chosen(path, *words)
    assert [flow.cc for flow in first.flows] == ["reno", "bbr"]
    assert first.interfaces[0].ingress.qdisc == "netem delay 20ms limit 1000000"  # half of 40 ms
    assert first.nodes[0].sysctls == {"net.ipv4.tcp_ecn": "1"}
    assert second.window_s == (55.0, 60.0)
    assert second.point == {
        "cc": "cubic", "flows.1.cc": "bbr", "network.rtt": "40ms", "hosts.sysctl.net.ipv4.tcp_ecn": "1",
        "measure.steady_state.window": "5s",
    }  # fmt: skip
    assert chosen(path, "flows[1].cc=bbr")[0].flows == chosen(path, "flows.b.cc=bbr")[0].flows == first.flows


def test_the_name_tells_what_the_template_does_not(tmp_path):
    path = write(tmp_path, TEXT)
    assert [run.run for run in chosen(path, "network.rtt=40ms")] == [
        "x-reno+network.rtt=40ms",
        "x-cubic+network.rtt=40ms",
    ]
    # what the axes and the seeds tell already is not said twice
    assert [run.key for run in chosen(path, "vary.cc=[bbr]", "seeds=2")] == ["local/x/x-bbr", "local/x/x-bbr~seed2"]


def test_an_axis_is_set_by_its_name(tmp_path):
    path = write(tmp_path, TEXT)
    assert [run.run for run in chosen(path, "cc=[bbr, dctcp]")] == ["x-bbr", "x-dctcp"]
    [one] = catalog.select("linux/single", only="*-pfifo-20ms", settings=parse_settings(["cc=vegas alpha 3"]))
    assert one.run == "vegas alpha 3-pfifo-20ms"
    with pytest.raises(BakeoffError, match="unknown key 'cd'"):
        chosen(path, "cd=bbr")


def test_runs_whose_settings_differ_have_names_that_differ(tmp_path):
    path = write(tmp_path, TEXT.replace("[reno, cubic]", "{one: reno, two: cubic}"))
    # a value behind a label does not show in the label
    first, second = chosen(path, "vary.cc.one=bbr", "run=x-{cc}")
    assert (first.run, second.run) == ("x-one+vary.cc.one=bbr", "x-two+vary.cc.one=bbr")
    # nor does the end of long words
    words = "flows.1.cc=cubic initial_ssthresh 100 hystart 0 fast_convergence "
    [zero, _], [one, _] = (chosen(path, words + value) for value in "01")
    assert zero.run != one.run
    assert [len(run.run) for run in (zero, one)] == [len("x-one+") + 60] * 2


def test_many_long_settings_leave_a_name_that_a_folder_may_have(tmp_path):
    path = write(tmp_path, TEXT)
    long = ["flows.1.cc=cubic initial_ssthresh 100 hystart 0 fast_convergence 1", "network.rtt=40ms"]
    long += [f"hosts.sysctl.net.ipv4.tcp_{word}=4096 131072 6291456 and more that is too long" for word in "abc"]
    [first, _], [again, _], [other, _] = (
        chosen(path, *long[:-1], end) for end in (long[-1], long[-1], long[-1] + "er")
    )
    # A name of 255 bytes is the longest that Linux takes, and `~seed10` and the like come behind it.
    assert len(first.run.encode()) == 200
    assert first.run.startswith("x-reno+flows.1.cc=cubic_initial_ssthresh_100_hystart")
    assert first.run == again.run
    assert first.run != other.run
    # Letters of several bytes count as such, and none is cut in two.
    [wide, _] = chosen(path, *long, "title=" + "ü" * 60, "hosts.sysctl.net.ipv4.tcp_d=" + "ü" * 60)
    assert len(wide.run.encode()) <= 200


def test_a_scenario_of_the_catalog_is_its_users_own_when_it_is_changed():
    runs = catalog.select("l4s-tests/s6-rfc3168", settings={"network.rtt": "40ms"}, only="*-pie-*")
    assert {(run.suite, run.scenario) for run in runs} == {("local", "s6-rfc3168")}
    assert len(runs) == 4
    assert len(catalog.select("l4s-tests/s6-rfc3168", settings={"vary.other": ["bbr"]})) == 12
    with pytest.raises(BakeoffError, match=r"--set renames the selected runs"):
        catalog.select("l4s-tests/s6*/*cubic*", settings={"vary.other": ["bbr"]})


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("network", "--set: 'network'; expected a key and a value, such as network.rtt=40ms"),
        ("=5", "--set: '=5'; expected a key and a value"),
        ("network.rtt=", "such as network.rtt=40ms; network.rtt=null takes the file's value away"),
        ("x={", "--set x: line 2, column 1: not YAML"),
        ("network.rtt=40", "x.yaml with --set network.rtt=40: network.rtt: '40' has no unit; expected a time"),
        ("network.rrt=40ms", "x.yaml with --set network.rrt=40ms: network: unknown key 'rrt'; did you mean 'rtt'?"),
        ("flows.2.cc=bbr", "flows.2.cc: 'flows' has no entry '2'; expected one of 0, 1, a, b"),
        ("flows.aa.cc=bbr", "flows.aa.cc: 'flows' has no entry 'aa'; did you mean 'a'?"),
        ("probes.0.every=1s", "probes: {0: {every: 1s}}; expected a list"),
        ("network.rtt.max=1s", "network.rtt.max: 'network.rtt' is '20ms', without 'max'"),
        ("flows.0.cc=bbr", "vary.cc: no effect: unused placeholder '{cc}'; 'flows[0].cc' is \"bbr\""),
    ],
)
def test_settings_that_lead_nowhere(tmp_path, word, message):
    path = write(tmp_path, TEXT)
    with pytest.raises(BakeoffError) as error:
        chosen(path, word)
    assert message in str(error.value)

"""A matrix does what it says, and nothing grows without bound: refused before memory is spent."""

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog, expand, load
from scenario_texts import FLOW, HEAD, refused, runs, write

# Axes that change nothing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + FLOW + "vary: {rtt: [10ms, 40ms]}",
            "vary.rtt: no effect: unused placeholder '{rtt}'; 'network.rtt' is \"20ms\"; expected \"{rtt}\" there",
        ),
        (
            HEAD + "flows: [{name: a}, {name: b, cc: reno}]\nvary: {cc: [reno]}",
            "vary.cc: no effect: unused placeholder '{cc}'; 'flows[1].cc' is \"reno\"; expected",
        ),
        (
            HEAD + FLOW + "title: '{q}'\nrun: '{q}'\nvary: {q: [pie, codel]}",
            "vary.q: no effect: unused placeholder '{q}'; expected \"{q}\" somewhere in the scenario",
        ),
        # One of two linked axes is used, the other stands nowhere: the table would show it.
        (
            HEAD + "flows: [{name: a, rtt: '{x}'}]\nvary: {rtts: [{x: 1ms, y: 2ms}]}",
            "vary.rtts.y: no effect: unused placeholder '{y}'",
        ),
        # Used, but both labels have one value.
        (
            HEAD
            + "flows: [{name: a, cc: '{c}'}]\nvary: {c: {one: reno, two: reno}, x: [100, 250]}\nhosts: {hz: '{x}'}",
            "vary.c: no effect: the runs 'one-100' and 'two-100' differ only in name",
        ),
        (
            HEAD + "flows: [{name: a, cc: '{x.cc}'}]\nvary: {x: {l: {cc: reno}, m: {cc: bbr}, n: {cc: bbr}}}",
            "vary: the runs 'm' and 'n' differ only in name: 'x' changes nothing in them",
        ),
        (
            HEAD + FLOW + "present: {rate_axis: [0mbit, '{r}']}\nvary: {r: [1mbit, 2mbit]}",
            "vary.r: no effect: the runs '1mbit' and '2mbit' differ only in name",
        ),
    ],
)
def test_an_axis_that_changes_nothing_is_named(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(message)


def test_a_linked_axis_may_be_there_for_the_names_alone(tmp_path):
    text = HEAD + "flows: [{name: a, cc: '{cc}'}]\nrun: '{name}'\nvary: {v: [{name: x, cc: reno}, {name: y, cc: bbr}]}"
    assert [run.run for run in runs(tmp_path, text)] == ["x", "y"]


def test_single_runs_of_a_file_are_chosen_from_a_matrix_that_is_sound(tmp_path):
    text = HEAD + "flows: [{name: a, cc: '{cc}'}]\nvary: {cc: [reno, cubic, bbr, bbr3]}"
    path = str(write(tmp_path, text))

    def chosen(*patterns, **options):
        return [run.run for run in catalog.select(list(patterns), **options)]

    assert chosen(f"{path}::bbr") == ["bbr", "bbr3"]  # a word that the name holds
    assert chosen(f"{path}::*bb?") == ["bbr"]
    assert chosen(f"{path}::re:^local.x.(reno|bbr)$") == ["reno", "bbr"]
    assert chosen(f"{path}::reno", f"{path}::c*") == ["reno", "cubic"]
    assert chosen(path, only="*b*") == ["cubic", "bbr", "bbr3"]
    with pytest.raises(BakeoffError, match=r"x.yaml: '\*pie\*' matches none of its 4 runs; expected one of reno"):
        chosen(f"{path}::*pie*")
    with pytest.raises(BakeoffError, match=r"-k: 'pie' matches none of the runs of '.*x.yaml', such as"):
        chosen(path, only="pie")
    write(tmp_path, HEAD + "flows: [{name: a, cc: '{cc}'}]\nvary: {cc: {one: reno, two: reno}}")
    with pytest.raises(BakeoffError, match=r"vary.cc: no effect"):
        chosen(f"{path}::one")


def test_a_pattern_besides_holds_for_the_catalog_too():
    assert len(catalog.select("l4s-tests/s6*", only="*-pie-*")) == 4
    assert len(catalog.select("l4s-tests/s6*", only="reno")) == 12


# Seeds


def test_a_scenario_says_how_often_it_is_repeated(tmp_path):
    path = write(tmp_path, HEAD + FLOW + "seeds: 3\n")
    assert [run.seed for run in expand(load(path))] == [1, 2, 3]
    assert [run.seed for run in catalog.select(str(path))] == [1, 2, 3]
    assert [run.seed for run in catalog.select(str(path), seeds=2)] == [1, 2]
    assert refused(tmp_path, HEAD + FLOW + "seeds: 0").startswith("seeds: 0; expected an integer, at least 1")


# Bounds


def bomb(levels):
    """Doubles with every level: 2^levels copies of a word."""
    lines = ["a0: &a0 [word, word]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, levels))]
    return "\n".join(["source:", *(f"  {line}" for line in lines)]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # 9^8
        (
            HEAD + FLOW + "vary:\n" + "".join(f"  {axis}: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for axis in "abcdefgh"),
            "vary: 43,046,721 runs; at most 100,000 without --yes (in Python: yes=True)",
        ),
        (
            HEAD + "flows: [{name: a, count: 100000000}]",
            "flows[0].count: 100000000; expected at most 65534",
        ),
        # 65534 copies of 1000 objects
        (
            HEAD
            + "flows: [{name: a, count: 65534, source: "
            + "{short: {count: 1000, mean_gap: 1ms, size_p5: 1kB, size_p95: 2kB}}}]",
            "flows: 65,534,000 flows and objects of short flows in one run; at most 1,000,000",
        ),
        (HEAD + FLOW + bomb(40), "is about "),
        ("x: &x [*x]\n" + HEAD + FLOW, "contains itself through an alias"),
        (HEAD + FLOW + "source: " + "[" * 70 + "]" * 70, "has more than 64 levels of mappings and lists"),
    ],
)
def test_what_would_not_fit_is_refused_at_once(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(message)


def test_placeholders_that_double(tmp_path):
    lines = "".join(f"  a{n}: {{x: '{{a{n + 1}}}{{a{n + 1}}}'}}\n" for n in range(40))
    text = HEAD + FLOW + "hosts: {sysctl: {x: '{a0}'}}\nvary:\n" + lines + "  a40: {x: '%s'}\n"
    assert runs(tmp_path, text % "")[0].nodes[0].sysctls == {"x": ""}
    # 4 letters doubled 15 times are 131,072, the first length above 65,536
    assert refused(tmp_path, text % "word").startswith("hosts.sysctl.x: is 131,072 characters with its placeholders")


def test_seeds_have_a_bound_that_can_be_lifted(tmp_path):
    path = write(tmp_path, HEAD + FLOW + "hosts: {hz: '{hz}'}\nvary: {hz: [100, 250]}")
    with pytest.raises(
        BakeoffError, match=r"2 points of the matrix with 1,000,000,000 seeds each are 2,000,000,000 runs"
    ):
        expand(load(path), seeds=10**9)
    with pytest.raises(BakeoffError, match=r"100,002 runs; at most 100,000 without --yes"):
        catalog.select(str(path), seeds=50_001)
    # 316 * 317 = 100,172
    axes = f"hz: {list(range(100, 416))}, x: {list(range(317))}"
    many = write(tmp_path, HEAD + FLOW + f"hosts: {{hz: '{{hz}}', sysctl: {{x: '{{x}}'}}}}\nvary: {{{axes}}}")
    with pytest.raises(BakeoffError, match=r"vary: 100,172 runs; at most 100,000 without --yes"):
        load(many)
    assert len(load(many, yes=True).points) == 100_172


def test_merged_mappings_do_not_double(tmp_path):
    merged = "".join(f"  m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: 1}}\n" for n in range(1, 40))
    text = HEAD + FLOW + "present:\n  m0: &m0 {k0: 1}\n" + merged
    assert refused(tmp_path, text).startswith("present: unknown key 'm0'")


# Numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + FLOW + "probes: [{name: p, every: 1ns}]", "probes[0].every: '1ns'; expected at least 1us"),
        (
            HEAD + FLOW + "probes: [{name: p, every: 1ms, size: 70kB}]",
            "probes[0].size: '70kB'; expected at most 65535B",
        ),
        (HEAD + FLOW + "sample_interval: 1ns", "sample_interval: '1ns'; expected at least 100us"),
        (HEAD + FLOW + "probes: [{name: p, every: 0}]", "probes[0].every: 0; expected at least 1us"),
        (HEAD + FLOW + "idle: 2h", "idle: '2h'; expected at most 3600s"),
        (
            HEAD + "flows: [{name: a, source: {rate: 1mbit, size: 2GB}}]",
            "flows[0].source.size: '2GB'; expected at most 1GB",
        ),
        (HEAD + "flows: [{name: a, max_pacing_rate: 11tbit}]", "'11tbit' is too large; expected at most 10000gbit"),
        (HEAD + f"flows: [{{name: a, start: {'9' * 5000}s}}]", "flows[0].start: "),
        (HEAD + "flows: [{name: a, stop: 2000000000s}]", "'2000000000s' is too large; expected at most 1000000000s"),
    ],
)
def test_a_number_beyond_all_networks_is_refused(tmp_path, text, message):
    with pytest.raises(BakeoffError) as error:
        load(write(tmp_path, text))
    assert message in str(error.value)

"""The Dockerfile's steps are targets of make, and its examples are commands of today."""

import re
import shlex
from pathlib import Path

from test_command_lines import parsed

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/container.md").read_text(encoding="utf-8")


def test_what_is_made_are_targets_of_make():
    targets = re.findall(r"^(?:RUN|    &&) make ([a-z-]+)", DOCKERFILE, re.MULTILINE)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:.*##", MAKEFILE, re.MULTILINE), target


def test_every_program_that_a_kernel_build_needs_is_installed():
    from bakeoff.engines.kernel.build_tools import TOOLS

    # A slim Debian has these of its own; gcc brings binutils.
    there = {"tar", "gzip", "mawk", "diffutils", "binutils", "make", "gcc"}
    [installed] = re.findall(r"AS kernel\n.*?install --yes --no-install-recommends (.*?) \\", DOCKERFILE, re.DOTALL)
    assert set(TOOLS.values()) - there <= set(installed.split())


def test_a_kernel_is_made_while_apts_lists_are_there():
    """`kernel/fetch-source` and `kernel/fetch-programs` look packages up in them."""
    [steps] = re.findall(r"AS kernel\n.*?^RUN (.*?[^\\])\n", DOCKERFILE, re.DOTALL | re.MULTILINE)
    order = [steps.index(step) for step in ("apt-get update", "make kernel", "rm -rf /var/lib/apt/lists/*")]
    assert order == sorted(order)


def test_what_one_stage_takes_another_has_made():
    stages = re.findall(r"^FROM \S+ AS (\S+)", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"COPY --from=(\S+)", DOCKERFILE)) <= set(stages)
    for target in re.findall(r"--target (\S+) \.", DOCKERFILE + PAGE):
        assert target in stages


def test_what_makes_the_user_is_installed():
    """The smallest Debian has no useradd."""
    [stage] = re.findall(r"AS simulator\n(.*?)\nCOPY", DOCKERFILE, re.DOTALL)
    [installed] = re.findall(r"--no-install-recommends (.*?) \\", stage)
    assert "useradd" in stage
    assert "passwd" in installed.split()


def test_every_stage_begins_with_the_debian_of_its_backports():
    [backports] = set(re.findall(r"--target-release (\S+)-backports", DOCKERFILE))
    bases = {base for base in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) if ":" in base}
    assert bases == {f"debian:{backports}-slim"}


def test_nobody_works_as_root():
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["1000"]


def test_the_examples_of_the_page_and_of_the_file_work():
    lines = (DOCKERFILE + PAGE).replace("\\\n", " ").splitlines()
    calls = [found[1] for line in lines if (found := re.search(r"docker run .*? bakeoff (.*?)(?:  |`|$)", line))]
    assert calls
    for call in calls:
        assert parsed(shlex.split(call))[0]


def test_what_git_ignores_is_not_sent_to_docker():
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    sent = {line.removeprefix("**/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"}
    assert sent <= ignored | {"target"}
    # git says which commit a wheel is made from.
    assert ".git" not in sent

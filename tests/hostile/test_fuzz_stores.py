"""Drawn manifests and archives of a store: each is a run as it was stored, or is refused; nothing lies beside it."""

import io
import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from fuzzing import CHANGES, DAMAGE, changed, damaged, drawn, refused
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff.campaign import archive
from bakeoff.campaign.archive import DamagedError
from bakeoff.campaign.store_local import LocalStore
from bakeoff.results import layout

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

KEY = "ab" * 32
FILES = {layout.RUN: b"{}", "summary.json": b"[]", "series.parquet": bytes(2000)}
WRITTEN = archive.written({name: (len(content), sha256(content).hexdigest()) for name, content in FILES.items()})
MANIFESTS = st.one_of(
    DAMAGE.map(lambda damage: damaged(WRITTEN, damage)),
    CHANGES.map(lambda changes: json.dumps(changed(json.loads(WRITTEN), changes)).encode()),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run's files."""
    folder = tmp_path_factory.mktemp("run")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def store(run, tmp_path_factory):
    """A store that holds the run."""
    found = LocalStore(tmp_path_factory.mktemp("store"))
    found.put(KEY, run)
    found.close()
    return found


@pytest.fixture(scope="module")
def into(tmp_path_factory):
    return tmp_path_factory.mktemp("taken") / "into"


def taken(take: Callable[[], None], into: Path) -> dict[str, bytes] | None:
    """The files that were taken, None if they were refused; nothing lies beside them."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    try:
        take()
    except DamagedError:
        return None
    finally:
        assert list(into.parent.iterdir()) == [into]
        assert all(path.is_file() and not path.is_symlink() for path in into.iterdir())
    return {path.name: path.read_bytes() for path in into.iterdir()}


@drawn
@given(text=MANIFESTS)
@example(text=WRITTEN)
@example(text=WRITTEN.replace(b": 2,", b": Infinity,"))
def test_a_manifest_is_read_or_refused(store, into, text):
    listed = refused(lambda: archive.read_manifest(text), DamagedError)
    assert listed is None or layout.RUN in listed
    manifest = store.root / KEY[:2] / KEY / archive.MANIFEST
    manifest.unlink()
    manifest.write_bytes(text)
    found = taken(lambda: store.fetch(KEY, into), into)
    assert found is None or (found.keys() == listed.keys() and found.items() <= FILES.items())
    assert text != WRITTEN or found == FILES
    assert store.content().runs <= 1


@drawn
@given(damage=DAMAGE)
@example(damage=([], None))
def test_an_archive_is_unpacked_or_refused(run, into, damage):
    content = damaged(archive.packed(run), damage)
    found = taken(lambda: archive.unpack(io.BytesIO(content), into), into)
    assert found in (None, FILES)
    assert damage != ([], None) or found == FILES
    assert taken(lambda: archive.check_archive(io.BytesIO(content)), into) == ({} if found else None)

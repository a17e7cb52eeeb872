"""The cache: the same truth from disk, never an old or a broken one, and no harm where there is no disk to write."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oracles import cache
from oracles.arithmetics import ARITHMETICS
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs, Operator
from oracles.truth import Truth, compute_truth
from properties.source import PCG64Source
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import arguments, each_format, each_operator, given

F32 = FORMATS["float32"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that keeps truths of any length and format."""
    monkeypatch.setenv("TRUEULP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "WORTH_STORING", range(2**22))
    monkeypatch.setattr(cache, "is_fast", lambda fmt: False)
    return tmp_path / "cache"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators whose truths were computed, not read."""
    names: list[str] = []

    def noticed(op: Operator, inputs: Inputs) -> tuple[Truth, ...]:
        names.append(op.name)
        return compute_truth(op, inputs)

    monkeypatch.setattr(cache, "compute_truth", noticed)
    return names


def parts(truth: Truth, fmt: Format) -> list[object]:
    """Everything a truth holds, to the bit."""
    e = truth.enclosure
    arrays = [e.hi, e.lo, e.exponent, e.radius, fmt.bits(truth.rounded), truth.decided]
    return [truth.ground, truth.arithmetics, truth.rounded.dtype, *[(a.dtype, a.shape, a.tobytes()) for a in arrays]]


@each_operator
@each_format
def test_the_truth_from_disk_is_the_same_to_the_bit(fmt: Format, op: Operator, folder: Path, computed: list[str]):
    inputs = arguments(op, fmt)
    (first,), (again,), (reference,) = cache.truth_of(op, inputs), cache.truth_of(op, inputs), compute_truth(op, inputs)
    assert parts(first, fmt) == parts(again, fmt) == parts(reference, fmt)
    assert computed == [op.name]
    assert len(list(folder.iterdir())) == 1


def test_short_and_endless_rows_are_not_stored(folder: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "WORTH_STORING", range(4, 6))
    for n in (3, 6, 4):
        assert not folder.exists()
        cache.truth_of(OPERATORS["sum"], given(F32, list(range(n))))
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("dtype", "times"), [("float64", 1), ("float32", 3)])
def test_what_takes_long_is_stored_by_default(
    tmp_path: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch, dtype: str, times: int
):
    """Long rows of float64; float32 is computed as fast as it is read."""
    monkeypatch.setenv("TRUEULP_CACHE", str(tmp_path))
    inputs = given(FORMATS[dtype], PCG64Source("cache").integers(-99, 99, 5000).tolist())
    truths = [cache.truth_of(OPERATORS["sum"], inputs)[0] for _ in range(3)]
    assert computed == ["sum"] * times
    assert [t.rounded[0] for t in truths] == [inputs.x.sum(dtype=np.float64)] * 3


def damaged(good: bytes) -> list[bytes]:
    """Cut off at many places, one bit flipped at many others, and not an archive at all."""
    flipped = [good[:i] + bytes([good[i] ^ 1 << i % 8]) + good[i + 1 :] for i in range(0, len(good), 5)]
    return [b"", b"PK", bytes(1000), *[good[:i] for i in range(0, len(good), 41)], *flipped]


def test_a_damaged_file_is_computed_again_and_replaced(folder: Path):
    op, inputs = OPERATORS["var"], given(F32, [1, 2, 4])
    (right,) = cache.truth_of(op, inputs)
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for bad in damaged(good):
        file.write_bytes(bad)
        assert parts(cache.truth_of(op, inputs)[0], F32) == parts(right, F32)
        if len(bad) < len(good):
            assert len(file.read_bytes()) == len(good)


def test_a_file_of_other_contents_is_computed_again(folder: Path, computed: list[str]):
    cache.truth_of(OPERATORS["sum"], given(F32, [1, 2, 3]))
    (file,) = folder.iterdir()
    np.savez(file, other=np.arange(3))
    assert cache.truth_of(OPERATORS["sum"], given(F32, [1, 2, 3]))[0].rounded.tolist() == [6]
    assert computed == ["sum", "sum"]


SUM, RMS = OPERATORS["sum"], OPERATORS["rms_norm"]
DIFFERENT: dict[str, tuple[Operator, Inputs]] = {
    "operator": (OPERATORS["mean"], given(F32, [1, 2])),
    "format": (SUM, given(FORMATS["bfloat16"], [1, 2])),
    "one-bit": (SUM, given(F32, [1, 2 + 2**-22])),
    "order": (SUM, given(F32, [2, 1])),
    "shape": (SUM, given(F32, [[1], [2]])),
    "mask": (SUM, given(F32, [1, 2], mask=[True, True])),
    "other-mask": (SUM, given(F32, [1, 2], mask=[True, False])),
    "norm": (RMS, given(F32, [1, 2], eps=1e-5)),
    "eps": (RMS, given(F32, [1, 2], eps=1e-6)),
    "weight": (RMS, given(F32, [1, 2], eps=1e-5, weight=[1, 1])),
    "bias": (RMS, given(F32, [1, 2], eps=1e-5, bias=[1, 1])),
}


def test_whatever_changes_the_truth_has_a_place_of_its_own(folder: Path, computed: list[str]):
    cases = [(SUM, given(F32, [1, 2])), *DIFFERENT.values()]
    for op, inputs in cases * 2:
        (truth,) = cache.truth_of(op, inputs)
        assert parts(truth, inputs.fmt) == parts(compute_truth(op, inputs)[0], inputs.fmt)
    assert len(computed) == len(list(folder.iterdir())) == len(cases)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(cache, "source_digest", lambda: "another source"),
        lambda patch: patch.setattr(cache, "exact_arithmetic", lambda op: ARITHMETICS["mpmath"]),
    ],
    ids=["source", "arithmetic"],
)
def test_a_changed_oracle_never_meets_an_old_truth(
    change: Callable[[pytest.MonkeyPatch], None], folder: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch
):
    cache.truth_of(SUM, given(F32, [1, 2]))
    change(monkeypatch)
    cache.truth_of(SUM, given(F32, [1, 2]))
    assert computed == ["sum", "sum"]
    assert len(list(folder.iterdir())) == 2


def test_the_source_digest_holds_every_file_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A copy of the package, changed in one byte of one file."""
    package = Path(cache.__file__).parent
    files = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    assert len(files) > 20
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((package / path).read_bytes())
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    digest = cache.source_digest.__wrapped__
    digests = {digest()}
    for path in files:
        (tmp_path / path).write_bytes((tmp_path / path).read_bytes() + b"#")
        digests.add(digest())
    assert digest() != cache.source_digest()
    assert len(digests) == len(files) + 1


@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_folder_that_cannot_be_written_costs_only_time(
    place: str, tmp_path: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch
):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    monkeypatch.setenv("TRUEULP_CACHE", str(blocker if place == "a file" else blocker / "deep" / "er"))
    monkeypatch.setattr(cache, "WORTH_STORING", 0)
    for _ in range(2):
        assert cache.truth_of(SUM, given(F32, [1, 2]))[0].rounded.tolist() == [3]
    assert computed == ["sum", "sum"]
    assert blocker.read_text() == "not a folder"


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TRUEULP_CACHE", str(tmp_path / "mine"))
    assert cache.folder() == tmp_path / "mine"
    monkeypatch.delenv("TRUEULP_CACHE")
    assert cache.folder() == tmp_path / "trueulp"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == Path.home() / ".cache" / "trueulp"

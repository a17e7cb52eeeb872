"""Recorded rows: what ships with the package, bit for bit, and what users bring in an npz file."""

from importlib.resources import files
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from oracles.catalogue import OPERATORS
from oracles.rounding import round_floats
from properties import recorded
from properties.battery import block_case, real_cases
from properties.case import Case
from properties.recorded import block_named, load_user_rows, real_blocks


@pytest.fixture(autouse=True)
def _no_user_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_USER", {})


@pytest.fixture(scope="module")
def shipped() -> dict[str, np.ndarray]:
    with np.load(str(files("properties").joinpath("data/minilm_rows.npz"))) as data:
        return dict(data)


def saved(folder: Path, **arrays: np.ndarray) -> str:
    path = folder / "rows.npz"
    np.savez(path, **arrays)
    return str(path)


def test_the_shipped_blocks_have_their_shapes_and_families():
    blocks = real_blocks()
    assert {name: block.rows.shape for name, block in blocks.items()} == {
        **{f"ln_x{k}": (48, 384) for k in range(5)},
        "logits": (320, 202),
        "gelu_x": (48, 1536),
    }
    assert [name for name, b in blocks.items() if "softmax" in b.families] == ["logits"]
    assert [b.eps for b in blocks.values() if b.weight is not None] == [1e-12] * 5


def test_layer_norm_inputs_are_the_recording(shipped: dict[str, np.ndarray]):
    for k in range(5):
        case = Case.parse(f"layer_norm:float32:real_rows:8x384:s2:weight:bias:eps=1e-12:block=ln_x{k}")
        for name, expected in (
            ("x", shipped["ln_x"][k, 16:24]),
            ("weight", shipped["ln_gamma"][k]),
            ("bias", shipped["ln_beta"][k]),
        ):
            assert case.inputs.arrays[name].tobytes() == expected.tobytes()
        assert case.inputs.parameters == {"eps": float(np.float32(1e-12))}


def test_logits_are_the_recording(shipped: dict[str, np.ndarray]):
    case = Case.parse("softmax:float32:real_rows:320x202:s0:block=logits")
    assert case.inputs.x.tobytes() == shipped["logits"].tobytes()


def test_other_formats_are_rounded_once(shipped: dict[str, np.ndarray]):
    case = Case.parse("softmax:bfloat16:real_rows:4x202:s0:block=logits")
    rounded = round_floats(shipped["logits"].reshape(-1, 202)[:4], case.fmt)
    assert case.inputs.x.tobytes() == rounded.tobytes()


def test_weights_are_left_out_where_they_are_not_asked_for():
    assert set(Case.parse("rms_norm:float32:real_rows:2x384:s0:block=ln_x1").inputs.arrays) == {"x"}


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operator_gets_real_rows(op: str):
    cases = list(real_cases(op, "float32", rows=8))
    assert cases
    for case in cases:
        assert Case.parse(case.id) == case
        assert (case.inputs.x.shape, case.rows) == ((8, case.n), 8)
    if op == "layer_norm":
        assert {"weight", "bias"} <= set(cases[0].inputs.arrays)
        assert cases[0].eps == np.float32(1e-12)


def test_every_array_of_a_file_is_a_block_and_its_last_axis_the_row(tmp_path: Path):
    path = saved(tmp_path, a=np.arange(24.0).reshape(2, 3, 4), b=np.arange(5), c=np.ones((2, 3), np.float16))
    blocks = load_user_rows(path)
    assert {name: block.rows.shape for name, block in blocks.items()} == {"a": (6, 4), "b": (1, 5), "c": (2, 3)}
    assert blocks["a"].rows[1].tolist() == [4, 5, 6, 7]
    assert block_named("user_rows", "b") is blocks["b"]


def test_weight_and_bias_go_with_the_blocks_of_their_length(tmp_path: Path):
    path = saved(tmp_path, a=np.ones((2, 3)), b=np.ones((2, 2)), weight=np.full(3, 2.0), bias=np.full(2, 5.0))
    blocks = load_user_rows(path)
    assert set(blocks) == {"a", "b"}
    assert (blocks["a"].weight.tolist(), blocks["a"].bias) == ([2, 2, 2], None)
    assert (blocks["b"].weight, blocks["b"].bias.tolist()) == (None, [5, 5])
    case = block_case("rms_norm", "float32", "user_rows", blocks["a"])
    assert case.inputs.arrays["weight"].tolist() == [2, 2, 2]


def test_a_weight_of_two_dimensions_is_a_block(tmp_path: Path):
    assert set(load_user_rows(saved(tmp_path, weight=np.ones((2, 3))))) == {"weight"}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint32, ml_dtypes.bfloat16])
def test_every_number_format_is_read(tmp_path: Path, dtype: type):
    """NumPy saves bfloat16 as two raw bytes."""
    (block,) = load_user_rows(saved(tmp_path, x=np.array([[1, 2, 100]]).astype(dtype))).values()
    assert block.rows.tolist() == [[1, 2, 100]]


def test_special_values_are_kept(tmp_path: Path):
    (block,) = load_user_rows(saved(tmp_path, x=np.array([np.nan, np.inf, -np.inf, -0.0]))).values()
    case = block_case("softmax", "float32", "user_rows", block)
    assert case.fmt.hex(case.inputs.x) == ["7fc00000", "7f800000", "ff800000", "80000000"]


def test_a_case_of_user_rows_reads_them_by_its_id(tmp_path: Path):
    blocks = load_user_rows(saved(tmp_path, **{"layer 3/x:1": np.arange(6.0).reshape(3, 2)}))
    (name,) = blocks
    case = block_case("softmax", "float32", "user_rows", blocks[name], rows=1)
    assert case.id == f"softmax:float32:user_rows:1x2:s0:block={name}"
    assert [Case.parse(case.id.replace("s0", f"s{k}")).inputs.x.tolist() for k in range(3)] == [
        [[0, 1]],
        [[2, 3]],
        [[4, 5]],
    ]


def test_a_second_file_takes_the_place_of_the_first(tmp_path: Path):
    load_user_rows(saved(tmp_path, a=np.ones((1, 2))))
    load_user_rows(saved(tmp_path, b=np.ones((1, 2))))
    with pytest.raises(ValueError, match="user_rows has no block 'a': expected one of b"):
        block_named("user_rows", "a")


def unreadable(folder: Path) -> dict[str, tuple[Path, str]]:
    """Files that are no npz with rows, and what is said of them."""
    text, lone, pickled = folder / "text.npz", folder / "lone.npy", folder / "pickled.npz"
    text.write_text("hello")
    np.save(lone, np.ones(3))
    np.savez(pickled, a=np.array([{}], object))
    return {
        "absent": (folder / "absent.npz", "no such file: .*absent.npz .expected an .npz"),
        "folder": (folder, "is not a readable .npz file"),
        "text": (text, "is not a readable .npz file .write it with numpy.savez"),
        "npy": (lone, "is not a readable .npz file"),
        "pickled": (pickled, "is not a readable .npz file"),
    }


@pytest.mark.parametrize("kind", ["absent", "folder", "text", "npy", "pickled"])
def test_files_that_cannot_be_read_are_refused_in_words(tmp_path: Path, kind: str):
    path, message = unreadable(tmp_path)[kind]
    with pytest.raises(ValueError, match=message):
        load_user_rows(str(path))


@pytest.mark.parametrize(
    ("arrays", "shown"),
    [
        ({}, "found nothing"),
        ({"a": np.array(3.0)}, r"found a: float64 \(\)"),
        ({"a": np.array(["x"])}, r"found a: <U1 \(1,\)"),
        ({"a": np.ones(2, complex)}, r"found a: complex128 \(2,\)"),
        ({"a": np.ones((2, 0))}, r"found a: float64 \(2, 0\)"),
        ({"weight": np.ones(3)}, r"found weight: float64 \(3,\)"),
    ],
    ids=["nothing", "scalar", "text", "complex", "empty", "weight-alone"],
)
def test_files_without_rows_say_what_they_hold(tmp_path: Path, arrays: dict[str, np.ndarray], shown: str):
    with pytest.raises(ValueError, match=f"holds no numeric array with rows .{shown}"):
        load_user_rows(saved(tmp_path, **arrays))


def test_unknown_blocks_list_the_known_ones():
    with pytest.raises(ValueError, match=r"real_rows has no block 'ln_x7': expected one of ln_x0, .*, gelu_x"):
        block_named("real_rows", "ln_x7")
    with pytest.raises(ValueError, match="user_rows has no block 'x': expected one of none; give the file with --data"):
        block_named("user_rows", "x")

"""ONNX Runtime on the CPU, on one thread: Softmax, LogSoftmax, LayerNormalization and ReduceLogSumExp as models of one
node. None of them takes a mask, and the CPU provider has no bfloat16.

Measured on ONNX Runtime 1.32 (opset 18):

- float16 is computed in float32. Subnormals are kept.
- ReduceLogSumExp of float16 runs as log(sum(exp(x))), unshifted: [-4772, -4764, -4710] gives -inf.
- Softmax and LogSoftmax of float64 depend on the batch; float32 does not.
- LogSoftmax of float64 gives -inf beside +inf: [-0.85, inf] becomes [-inf, NaN].
- LayerNormalization raises on an empty row. Softmax of a row of -inf is NaN.
"""

import functools
from typing import Any

import numpy as np

from gpu_impls import implementation
from gpu_impls.libraries import Library

onnx: Any = Library("onnx")
onnxruntime: Any = Library("onnxruntime")

SOURCE = "onnxruntime"
ALL = ("float16", "float32", "float64")
# Old enough for every runtime that pyproject.toml allows.
OPSET, IR_VERSION = 18, 8
DOMAIN = (1e-15, 1e15)


@functools.cache
def session(op_type: str, dtype: str, ranks: tuple[tuple[str, int], ...], **attributes: Any) -> Any:
    """A session for one node; ``ranks`` holds the names and ranks of its inputs. One per operator, dtype and eps."""
    helper, element = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node(op_type, [name for name, _ in ranks], ["y"], **attributes)
    elements = {"axes": onnx.TensorProto.INT64}
    given = [helper.make_tensor_value_info(name, elements.get(name, element), [None] * rank) for name, rank in ranks]
    graph = helper.make_graph([node], op_type, given, [helper.make_tensor_value_info("y", element, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(op_type: str, inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    """The one output of the node."""
    ranks = tuple((name, array.ndim) for name, array in inputs.items())
    (output,) = session(op_type, inputs["x"].dtype.name, ranks, **attributes).run(None, inputs)
    return output


DEPENDS_ON_BATCH = "float64 rows are handled one way alone and another in a batch"
INFINITE_MAXIMUM = "finite elements beside +inf become -inf, not NaN"


@implementation("softmax", name="onnxruntime", dtypes=("float16", "float32"), masked_row="nan", source=SOURCE)
@implementation(
    "softmax",
    name="onnxruntime_float64",
    dtypes=("float64",),
    masked_row="nan",
    source=SOURCE,
    deviates={"batch_invariance": DEPENDS_ON_BATCH},
)
def onnx_softmax(x: np.ndarray) -> np.ndarray:
    """Softmax, axis -1."""
    return run("Softmax", {"x": x}, axis=-1)


@implementation("log_softmax", name="onnxruntime", dtypes=("float16", "float32"), masked_row="nan", source=SOURCE)
@implementation(
    "log_softmax",
    name="onnxruntime_float64",
    dtypes=("float64",),
    masked_row="nan",
    source=SOURCE,
    deviates={"batch_invariance": DEPENDS_ON_BATCH, "special_values": INFINITE_MAXIMUM},
)
def onnx_log_softmax(x: np.ndarray) -> np.ndarray:
    """LogSoftmax, axis -1."""
    return run("LogSoftmax", {"x": x}, axis=-1)


UNSHIFTED = "log(sum(exp(x))) in float64 without a shift: inf from about 710 on, and -inf where all are below -745"


@implementation("logsumexp", name="onnxruntime", dtypes=("float32", "float64"), source=SOURCE)
@implementation(
    "logsumexp", name="onnxruntime_float16", dtypes=("float16",), source=SOURCE, deviates={"accuracy": UNSHIFTED}
)
def onnx_logsumexp(x: np.ndarray) -> np.ndarray:
    """ReduceLogSumExp, axes (-1,), keepdims 0."""
    return run("ReduceLogSumExp", {"x": x, "axes": np.array([-1])}, keepdims=0)


@implementation("layer_norm", name="onnxruntime", dtypes=ALL, min_length=1, domain=DOMAIN, source=SOURCE)
def onnx_layer_norm(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """LayerNormalization, axis -1, epsilon eps. It has to have a Scale: ones where there is no weight."""
    inputs = {"x": x, "weight": np.ones(x.shape[-1], x.dtype) if weight is None else weight}
    if bias is not None:
        inputs["bias"] = bias
    return run("LayerNormalization", inputs, axis=-1, epsilon=eps)

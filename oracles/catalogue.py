"""Every operator there is, by name."""

from oracles.fused_add_rms_norm import FUSED_ADD_RMS_NORM
from oracles.layer_norm import LAYER_NORM
from oracles.log_softmax import LOG_SOFTMAX
from oracles.logsumexp import LOGSUMEXP
from oracles.max import MAX
from oracles.mean import MEAN
from oracles.operator import Operator
from oracles.rms_norm import RMS_NORM
from oracles.softmax import SOFTMAX
from oracles.sum import SUM
from oracles.var import VAR

OPERATORS: dict[str, Operator] = {
    op.name: op
    for op in (SUM, MEAN, VAR, MAX, LOGSUMEXP, SOFTMAX, LOG_SOFTMAX, RMS_NORM, FUSED_ADD_RMS_NORM, LAYER_NORM)
}


def operator_named(name: str) -> Operator:
    """The operator called ``name``. Raises ``ValueError`` listing the known ones."""
    try:
        return OPERATORS[name]
    except KeyError:
        raise ValueError(f"unknown operator {name!r}: expected one of {', '.join(OPERATORS)}") from None

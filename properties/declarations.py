"""What a contract may declare to fail: the names of properties and regimes, checked before anything runs.

``gpu_impls`` cannot know them, being below; a name that nothing checks would excuse nothing and never be missed.
"""

from collections.abc import Iterable

from gpu_impls.registry import Implementation
from properties.laws import LAWS
from properties.oracle_check import ORACLE_PROPERTIES
from properties.regimes import REGIMES

PROPERTIES = (*ORACLE_PROPERTIES, *LAWS)


def check_declarations(implementations: Iterable[Implementation]) -> None:
    """Raises ``ValueError`` for a name in ``deviates`` or ``known_faulty`` that is no property (or, for ``deviates``,
    no regime either)."""
    for i in implementations:
        for keyword, known in (("deviates", (*PROPERTIES, *REGIMES)), ("known_faulty", PROPERTIES)):
            for name in getattr(i.contract, keyword):
                if name not in known:
                    raise ValueError(f"{i.id}: unknown {name!r} in {keyword}: expected some of {', '.join(known)}")

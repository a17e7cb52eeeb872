"""What we run: implementations, their contracts, and how they are called."""

from gpu_impls.registry import implementation

__all__ = ["implementation"]

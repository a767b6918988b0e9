"""Scripts without an ending, as modules."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
# For scripts/release_bundle: import this module first.
sys.path.insert(0, str(ROOT / "scripts"))


def load(name: str) -> ModuleType:
    """scripts/NAME, which does nothing until its main is called."""
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None, "a loader makes a spec"
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the module that they are of.
    sys.modules[loader.name] = module
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = wrote
    return module

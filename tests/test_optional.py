"""Packages that may be missing."""

import math

import pytest

from smoothgraph.optional import need


def test_what_is_there_is_imported_and_what_is_not_is_named_with_its_remedy():
    assert need("math", "nothing") is math
    assert need("os.path", "nothing").join("a", "b")
    with pytest.raises(ImportError, match=r"This needs no_such_package, .*: pip install 'smoothgraph\[io\]'") as caught:
        need("no_such_package.part", "smoothgraph[io]")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)

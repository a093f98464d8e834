"""Python 3.14 reads an annotation when it is needed, in the class: there, a name means the field before the type."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _hidden_types(source: str) -> Iterator[str]:
    """Types that a field of the same class hides."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
        names = {field.target.id for field in fields if isinstance(field.target, ast.Name)}
        for field in fields:
            yield from (
                f"{node.name}: {part.id}"
                for part in ast.walk(field.annotation)
                if isinstance(part, ast.Name) and part.id in names
            )


def test_a_field_that_hides_its_type_is_found() -> None:
    assert list(_hidden_types("class Row:\n    date: date | None\n    day: int")) == ["Row: date"]


def test_no_field_hides_a_type_of_its_class() -> None:
    files = [path for room in ("service", "warehouse", "config") for path in sorted((ROOT / room).rglob("*.py"))]
    assert [found for path in files for found in _hidden_types(path.read_text())] == []

"""What griffe, which reads the docstrings for the site, calls: mkdocs.yml beside it names this file."""

from typing import Any

from griffe import Extension

from experiments.docstrings import as_markdown


class AsMarkdown(Extension):
    """Every docstring, as it is read from the source."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

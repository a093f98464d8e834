"""Publishing as the tests of other things do it: this process reads the drop. Tests of the reader process, of faults
and of real instances use the process that ships."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import unwrap
from unittest import mock

from config.text import printable, printable_struct
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.drops.reader import DropReader, read_in_subprocess
from warehouse.publishing import publish as shipped
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.schema.progress import ProgressCallback

publishing = partial(shipped.publishing, reader=read_drop)
dry_run = partial(shipped.dry_run, reader=read_drop)


def publish(
    catalog: Catalog,
    paths: Sequence[str],
    options: PublishOptions = PublishOptions(),  # noqa: B008 - frozen
    progress: ProgressCallback = lambda _: None,
    *,
    reader: DropReader = read_drop,
) -> PublishOutcome:
    """Publishes a drop in a data folder that no instance serves."""
    with shipped.publishing(catalog, paths, options, progress, reader=reader) as publication:
        if publication.next is not None:
            publication.adopt()
            publication.switch()
    return publication.outcome


publish_as_shipped = partial(publish, reader=read_in_subprocess)


def read_here(request: ReadRequest, progress: ProgressCallback) -> ReadResult:
    result: ReadResult = printable_struct(read_drop(request, lambda step: progress(printable(step))))
    return result


@contextmanager
def reading_here() -> Iterator[None]:
    """Commands in this process read drops in it too: starting the reader process takes longer than all else they do."""
    with ExitStack() as stack:
        for function in (shipped.publishing, shipped.dry_run):
            stack.enter_context(mock.patch.dict(unwrap(function).__kwdefaults__, reader=read_here))
        yield

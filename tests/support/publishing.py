"""Publishing as the tests of other things do it: the drop is read in this process. Tests of the reader process, of
faults and of commands use the process that ships."""

from functools import partial

from warehouse.drops.pipeline import read_drop
from warehouse.publishing import publish as shipped

publish = partial(shipped.publish, reader=read_drop)
publishing = partial(shipped.publishing, reader=read_drop)
dry_run = partial(shipped.dry_run, reader=read_drop)

"""The magics `%px` and `%%px` of ranks: in rank order, and they notice a dead rank and a Ctrl-C."""

from ipyparallel.client.magics import ParallelMagics
from IPython.core.magic_arguments import parse_argstring


def register(shell, ranks):
    """Send `%px` and `%%px` of an IPython shell to these ranks, a `Ranks`, from now on."""
    magics = RankMagics(shell, ranks.view)
    magics.ranks = ranks
    shell.register_magics(magics)


class RankMagics(ParallelMagics):
    """`%px` and `%%px` of some ranks, a `Ranks`."""

    ranks = None

    def parallel_execute(self, cell, block=None, groupby="type", save_name=None, **ignored):
        """Run a cell on every rank: ipyparallel's `%px` and `%%px` end here."""
        call = self._submit(cell, save_name)
        if not (self.view.block if block is None else block):
            return call
        self._finish(call, groupby)

    def cell_px(self, line="", cell=None):
        """Run a cell on every rank; with --local in the kernel too."""
        options = parse_argstring(self.cell_px, line)
        if not options.local:
            return super().cell_px(line, cell)
        others = [word for word in line.split() if word != "--local"]
        call = super().cell_px(" ".join(["--noblock", *others]), cell)
        here = self.shell.run_cell(cell)
        if isinstance(here.error_in_exec, KeyboardInterrupt):
            self.ranks.interrupt(call)
            raise KeyboardInterrupt
        if options.block is False:
            return call
        return self._finish(call, options.groupby)

    cell_px.parser = ParallelMagics.cell_px.parser  # `parse_argstring` looks for it there

    def _submit(self, cell, save_name):
        send = super().parallel_execute
        self.ranks.cell = cell
        return self.ranks.submit(lambda: send(cell, block=False, save_name=save_name))

    def _finish(self, call, groupby):
        """Wait for the ranks and show what they printed."""
        try:
            self.ranks.wait(call)
        finally:
            if call.done():
                call.wait_for_output(1)
                call.display_outputs(groupby)

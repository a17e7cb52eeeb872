"""``trueulp list``: what can run here, and why the rest cannot."""

import argparse

from rich.console import Console

from gpu_impls.registry import load_built_in
from reports.commands import OK, Action
from reports.commands.options import add_selection, select
from reports.console import print_list

SUMMARY = "what can run here, and why not"


def configure(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)


def prepare(options: argparse.Namespace) -> Action:
    chosen = select(options)

    def show(console: Console) -> int:
        print_list(console, chosen, load_built_in())
        return OK

    return show

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each fault of scripts/faults.txt names lines that are in the source, once: else nobody knows whether the tests notice it."""
import os
import sys

import tree

sys.path.insert(0, os.path.join(tree.ROOT, 'scripts'))
from faults import Fault, read_list  # noqa: E402


def main():
    tap = tree.Tap()
    gone = Fault('fault: x\nfile: src/maps/hash.c\nsuites: maps\n-no such line\n+another\n')
    tap.ok(gone.places(tree.ROOT) == 0, 'a line that is nowhere is found missing')
    faults = read_list(os.path.join(tree.ROOT, 'scripts', 'faults.txt'))
    tap.ok(len(faults) >= 20, f'{len(faults)} faults')
    tap.none([f'{f.name}: in {f.file} {f.places(tree.ROOT)} times' for f in faults if f.places(tree.ROOT) != 1],
             'every fault can be put in')
    tap.done()


if __name__ == '__main__':
    main()

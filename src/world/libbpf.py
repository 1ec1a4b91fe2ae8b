#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libbpf.py LIBBPF.A SYMS OUT.A: a private copy of libbpf.

All members become one object in which the symbols of SYMS are renamed and only what the shared library beside the
archive exports stays global, so that neither its internals nor ours can meet each other's names.
"""
import os
import subprocess
import sys
import tempfile

archive, syms, out = sys.argv[1:4]
tool = lambda name: os.environ.get(name.upper(), name)

with tempfile.TemporaryDirectory() as tmp:
    listing = subprocess.run([tool("nm"), "-D", "--defined-only", "-P", archive[:-2] + ".so"], check=True,
                             capture_output=True, text=True).stdout
    keep = os.path.join(tmp, "keep")
    with open(keep, "w") as f:
        for line in listing.splitlines():
            f.write(line.split()[0].split("@")[0] + "\n")
    merged, renamed = os.path.join(tmp, "merged.o"), os.path.join(tmp, "libbpf_private.o")
    subprocess.run([tool("ld"), "-r", "-o", merged, "--whole-archive", archive], check=True)
    subprocess.run([tool("objcopy"), "--redefine-syms=" + syms, "--keep-global-symbols=" + keep, merged, renamed], check=True)
    if os.path.exists(out):
        os.unlink(out)
    subprocess.run([tool("ar"), "rcsD", out, renamed], check=True)

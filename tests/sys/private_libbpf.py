#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""private_libbpf.py LIBBPF_PRIVATE.A SYMS PROGRAM: only the private copy of libbpf is diverted, nothing in the process."""
import subprocess
import sys

archive, syms, program = sys.argv[1:4]
run = 0
failed = 0


def ok(cond, name):
    global run, failed
    run += 1
    failed += not cond
    print(f"{'ok' if cond else 'not ok'} {run} - {name}")


def nm(path, *flags):
    text = subprocess.run(["nm", "-P", *flags, path], check=True, capture_output=True, text=True).stdout
    return [line.split()[:2] for line in text.splitlines() if len(line.split()) >= 2]


renamed = dict(line.split() for line in open(syms) if line.strip())
lib = nm(archive)
undefined = {name for name, kind in lib if kind == "U"}
defined = {name for name, kind in lib if kind in "TDBR"}
for old, new in renamed.items():
    ok(old not in undefined and new in undefined, f"libbpf calls {new} in the place of {old}")
foreign = sorted(n for n in defined if not n.startswith(("bpf_", "btf__", "btf_ext__", "btf_dump__", "libbpf_",
                                                         "perf_buffer__", "ring_buffer__", "user_ring_buffer__")))
ok(not foreign, "the private copy defines libbpf's interface only" + (": " + " ".join(foreign) if foreign else ""))
ok("bpf_object__load" in defined, "and all of that")
exe = nm(program)
ours = sorted(name for name, kind in exe if name in renamed and kind in "TDBRWV" and name != "stderr")
ok(not ours, "a program that links it defines none of libc's names" + (": " + " ".join(ours) if ours else ""))
dynamic = {name.split("@")[0] for name, kind in nm(program, "-D")}
ok("syscall" in dynamic, "its own system calls go to libc")
print(f"1..{run}")
sys.exit(failed > 0)

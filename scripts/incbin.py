#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""incbin.py SYMBOL FILE OUT.S: an assembler file that carries FILE's bytes as SYMBOL .. SYMBOL_end (read-only)."""
import sys

symbol, path, out = sys.argv[1:4]
data = open(path, "rb").read()
with open(out, "w") as f:
    f.write("\t.section .rodata\n\t.p2align 4\n")
    for name in (symbol, symbol + "_end"):
        f.write(f"\t.globl {name}\n\t.hidden {name}\n\t.type {name}, %object\n")
    f.write(f"{symbol}:\n")
    for i in range(0, len(data), 32):
        f.write("\t.byte " + ",".join(str(b) for b in data[i:i + 32]) + "\n")
    f.write(f"{symbol}_end:\n\t.byte 0\n\t.section .note.GNU-stack,\"\",%progbits\n")

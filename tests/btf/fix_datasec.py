#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fills in what a compiler leaves to the loader: section sizes and variable offsets in an object's BTF.

    fix_datasec.py OBJECT OUT.btf [--objcopy PROGRAM]
"""
import struct
import subprocess
import sys

KIND_TAIL = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0),
             15: (0, 12), 17: (4, 0), 19: (0, 12)}


def fix(data):
    data = bytearray(data)
    hdr_len, type_off, type_len = struct.unpack_from('<III', data, 4)
    at = hdr_len + type_off
    end = at + type_len
    while at < end:
        _, info, _ = struct.unpack_from('<III', data, at)
        kind, vlen = (info >> 24) & 0x1f, info & 0xffff
        fixed, each = KIND_TAIL.get(kind, (0, 0))
        if kind == 15:
            pos = 0
            for i in range(vlen):
                entry = at + 12 + 12 * i
                size = struct.unpack_from('<I', data, entry + 8)[0]
                pos = (pos + 7) & ~7
                struct.pack_into('<I', data, entry + 4, pos)
                pos += size
            struct.pack_into('<I', data, at + 8, max(pos, 1))
        at += 12 + fixed + each * vlen
    return bytes(data)


def extract(obj, out, objcopy):
    subprocess.run([objcopy, '--dump-section', f'.BTF={out}', obj, '/dev/null'], check=True)
    with open(out, 'rb') as f:
        data = f.read()
    with open(out, 'wb') as f:
        f.write(fix(data))


if __name__ == '__main__':
    extract(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else 'llvm-objcopy-19')

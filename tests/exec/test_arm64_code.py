#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the arm64 compiler makes of the programs that come with inlay, looked at on any machine.

test_arm64_code.py INLAY GCC OBJECT...: every program is compiled; every word of it is an instruction; calls stand for
calls only; the call-free programs of `bench compute` are at most twice as large as what GCC (an aarch64 one, '': none) makes
of the same C with -O2.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

inlay, gcc, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
SOURCE = os.environ['SOURCE_ROOT']
LIMIT = 2.0
run = 0
failed = False


def ok(good, text, *notes):
    global run, failed
    run += 1
    failed |= not good
    print('ok' if good else 'not ok', run, '-', text)
    for note in notes if not good else ():
        print('#', str(note)[-2000:].replace('\n', '\n# '))


def listing(path, *args):
    p = subprocess.run([inlay, 'dump', 'jited', '--arch', 'arm64', '--json', path, *args], capture_output=True, text=True)
    return p, [json.loads(line) for line in p.stdout.splitlines() if line]


def words(func):
    yield from ((None, n) for n in func['entry'])
    for insn in func['insns']:
        yield from ((insn['text'], n) for n in insn['native'])


def pure_rows():
    """Names in COMPUTE_ROWS that call nothing."""
    with open(os.path.join(SOURCE, 'bpf/bench/compute.h')) as f:
        return re.findall(r'ROW\((\w+),[^\n]*,\s*1\)', f.read())


def gcc_sizes(tmp):
    """Bytes of bench/native.c's loop over each computation."""
    out = os.path.join(tmp, 'native.o')
    subprocess.run([gcc, '-O2', '-std=gnu11', '-D_GNU_SOURCE', '-I', SOURCE, '-I', f'{SOURCE}/src', '-I', f'{SOURCE}/include',
                    '-I', f'{SOURCE}/bpf', '-c', f'{SOURCE}/bench/native.c', '-o', out], check=True)
    nm = subprocess.run([gcc.removesuffix('gcc') + 'nm', '-S', out], check=True, capture_output=True, text=True).stdout
    return {m[2]: int(m[1], 16) for m in re.finditer(r'^[0-9a-f]+ ([0-9a-f]+) t loop_(\w+)', nm, re.M)}


def code(path):
    p, funcs = listing(path)
    name = os.path.basename(path)
    if not funcs and 'refused' not in p.stderr and 'no disassembler' in p.stderr:
        print('1..0 # SKIP no disassembler for arm64')
        sys.exit(0)
    all_words = [w for f in funcs for w in words(f)]
    ok(p.returncode == 0 and len(all_words) > 10, f'{name} is compiled', p.stderr)
    bad = [n for _, n in all_words if n['text'] in ('.byte', '') or len(n['bytes']) != 8]
    ok(not bad, f'{name}: {len(all_words)} words, each an instruction', bad[:5])
    bad = [(text, n) for text, n in all_words if text and re.match(r'blr? ', n['text']) and ' call ' not in f' {text}']
    ok(not bad, f'{name}: nothing but calls is a call', bad[:5])


def sizes(path):
    with tempfile.TemporaryDirectory() as tmp:
        want = gcc_sizes(tmp)
        ratios = []
        for row in pure_rows():
            p = subprocess.run([inlay, 'dump', 'jited', '--arch', 'arm64', path, f'compute_{row}_run', '--raw', '-'],
                               capture_output=True)
            ratios.append(len(p.stdout) / want[row])
            print(f'# {row}: {len(p.stdout)} bytes, gcc {want[row]}: {ratios[-1]:.2f}')
            ok(0.3 < ratios[-1] <= LIMIT, f'{row} is at most {LIMIT:.0f} times as large as by gcc', p.stderr.decode())
        print(f'# geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}')
        ok(len(ratios) == 10, 'ten computations call nothing')


for each in objects:
    code(each)
if gcc:
    sizes(next(o for o in objects if os.path.basename(o) == 'bench_compute.bpf.o'))
else:
    run += 1
    print(f'ok {run} # SKIP no aarch64-linux-gnu-gcc to compare sizes with')
print(f'1..{run}')
sys.exit(failed)

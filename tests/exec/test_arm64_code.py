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
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


# bpf/bench/compute.bpf.c for a C compiler: the same functions, with bpf_loop() as the loop it is
NATIVE = """
#include <linux/types.h>
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#include "bench/bench.h"
struct bench_count count;
static __u64 cells[256];
#define COMPUTE_CALL() 0
#define COMPUTE_CELL(at) (&cells[at])
#include "bench/compute.h"
struct compute_data data;
struct loop { __u64 x; };
static __always_inline void add(__u64 *p, __u64 v) { __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
#define ROW(name, text, pure) \\
	long name##_each(__u32 index, void *ctx) \\
	{ struct loop *l = ctx; l->x = compute_##name(&data, l->x + index); return 0; } \\
	int name##_run(void *ctx) \\
	{ \\
		struct loop l = { .x = count.base }; \\
		for (__u32 i = 0; i < 100; i++) if (name##_each(i, &l)) break; \\
		add(&count.hits, 100); add(&count.important, 0); add(&count.sum, 0); add(&count.want, 0); add(&count.misses, 0); \\
		count.sum = l.x; \\
		return 0; \\
	}
COMPUTE_ROWS(ROW)
"""


def gcc_sizes(tmp):
    """Bytes of each program: its function, and the function of its loop."""
    out = os.path.join(tmp, 'native.o')
    subprocess.run([gcc, '-O2', '-mno-outline-atomics', '-I', f'{SOURCE}/bpf', '-x', 'c', '-', '-c', '-o', out], check=True,
                   input=NATIVE, text=True, cwd=tmp)
    nm = subprocess.run([gcc.removesuffix('gcc') + 'nm', '-S', out], check=True, capture_output=True, text=True).stdout
    sizes = {}
    for m in re.finditer(r'^[0-9a-f]+ ([0-9a-f]+) T (\w+)_(?:each|run)$', nm, re.M):
        sizes[m[2]] = sizes.get(m[2], 0) + int(m[1], 16)
    return sizes


def code(path):
    p, funcs = listing(path)
    name = os.path.basename(path)
    if not funcs and 'refused' not in p.stderr and 'no disassembler' in p.stderr:
        print('1..0 # SKIP no disassembler for arm64')
        sys.exit(0)
    all_words = [w for f in funcs for w in words(f)]
    ok(p.returncode == 0 and len(all_words) >= 3, f'{name} is compiled', p.stderr)
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

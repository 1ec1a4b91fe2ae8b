#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What inlining makes of an object: dump lowered and jited, run --show-inlining, --no-inline."""
import json
import os
import platform
import re
import tempfile
import tempfile

from tapcli import OBJECTS, can_bpf, done, equal, inlay, ok, skip


def obj(name):
    return os.path.join(OBJECTS, name + '.bpf.o')


# what runs
p = inlay('dump', 'lowered', obj('inline'), 'loops')
ok(p.rc == 0 and 'call bpf_loop' not in p.out and '; total += i; @ inline.bpf.c:' in p.out.split('\n\n')[0],
   'dump lowered shows a loop in place of bpf_loop, with the function in it and its lines', p.out, p.err)
p = inlay('dump', 'lowered', obj('inline'), 'loops', '--no-inline=loop')
ok(p.rc == 0 and 'call bpf_loop' in p.out, 'with --no-inline=loop it is called', p.out, p.err)
p = inlay('dump', 'lowered', obj('inline'), 'looks_up')
ok(p.rc == 0 and 'call bpf_map_lookup_elem' not in p.out and 'call bpf_get_smp' not in p.out,
   'a lookup with a constant key and the CPU are no calls', p.out, p.err)
for what, stays in (('map', 'bpf_map_lookup_elem'), ('helper', 'bpf_get_smp_processor_id')):
    p = inlay(f'--no-inline={what}', 'dump', 'lowered', obj('inline'), 'looks_up')
    ok(p.rc == 0 and f'call {stays}' in p.out, f'with --no-inline={what} {stays} is called', p.out, p.err)
p = inlay('dump', 'lowered', obj('inline'), 'looks_up', '--interp')
ok(p.rc == 0 and 'call bpf_map_lookup_elem' in p.out, 'interpreted, all are called', p.out, p.err)
p = inlay('dump', 'xlated', obj('inline'), 'loops')
ok(p.rc == 0 and 'if r1 <= 0x800000' in p.out, 'dump xlated shows the loop Linux makes', p.out, p.err)
p = inlay('dump', 'jited', obj('inline'), 'loops')
if platform.machine() == 'x86_64':
    ok(p.rc == 0 and re.search(r'^ +[0-9a-f]+:  (?:[0-9a-f]{2} )+ +retq$', p.out, re.M) and '(95) exit' in p.out and
       '; total += i; @ inline.bpf.c:' in p.out, 'dump jited shows machine code under instructions and lines', p.out, p.err)
    funcs = [json.loads(line) for line in inlay('dump', 'jited', obj('inline'), 'loops', '--json').out.splitlines() if line]
    native = [n for f in funcs for i in f['insns'] for n in i['native']] + [n for f in funcs for n in f['entry']]
    native.sort(key=lambda n: n['at'])
    ok(funcs and funcs[0]['func'] == 'loops' and all(a['at'] + len(a['bytes']) // 2 == b['at'] for a, b in zip(native, native[1:])),
       'dump jited --json: every byte of it, once', funcs)
    raw = inlay('dump', 'jited', obj('inline'), 'loops', '--raw', '-')
    ok(raw.rc == 0 and len(raw.stdout) == sum(len(n['bytes']) // 2 for n in native), '--raw writes the code itself', len(raw.stdout))
else:
    skip('dump jited', 'no compiler for this machine')
# the code of either machine on any
for arch, last in (('x86_64', r'c3 +retq'), ('arm64', r'c0 03 5f d6 +ret')):
    p = inlay('dump', 'jited', obj('inline'), 'loops', '--arch', arch)
    ok(p.rc == 0 and re.search(last + '$', p.out, re.M) and '; total += i; @ inline.bpf.c:' in p.out,
       f'dump jited --arch {arch}', p.out, p.err)
    # of a program that holds no address, which would differ from run to run, and on arm64 its length too
    with tempfile.NamedTemporaryFile() as f:
        raw = inlay('dump', 'jited', obj('inline'), 'settled', '--arch', arch, '--raw', f.name)
        code = f.read()
    native = [n for f in map(json.loads, inlay('dump', 'jited', obj('inline'), 'settled', '--arch', arch, '--json').out.split('\n')[:-1])
              if f for n in f['entry'] + [n for i in f['insns'] for n in i['native']]]
    ok(raw.rc == 0 and len(code) > 20 and
       code == bytes.fromhex(''.join(n['bytes'] for n in sorted(native, key=lambda n: n['at']))), f'as bytes, {arch}',
       code.hex(), native, raw.err)
for args, what in ((('lowered', '--arch', 'arm64'), 'machine code'), (('jited', '--arch', 'riscv'), 'no machine')):
    p = inlay('dump', args[0], obj('inline'), 'loops', *args[1:])
    ok(p.rc == 2 and what in p.err, f'dump {" ".join(args)} is told so', p.err)
p = inlay('dump', 'jited', obj('inline'), 'loops', '--interp')
ok(p.rc == 1 and 'no machine code' in p.err, 'an interpreted program has no machine code', p.err)
p = inlay('dump', 'lowered', obj('inline'), 'loops', '--engine', 'kernel')
ok(p.rc == 2 and 'kernel engine' in p.err, "what runs in the kernel is not dump's to show", p.err)
tmp = tempfile.TemporaryDirectory()
ctx = os.path.join(tmp.name, 'ctx')
with open(ctx, 'wb') as f:
    f.write(bytes(16))
p = inlay('run', obj('inline'), 'loops', '--ctx-in', ctx, '--show-inlining')
ok(p.rc == 0 and re.search(r'^loops: insn \d+: bpf_loop: a loop with the function in it; .*@ inline.bpf.c:\d+$', p.out, re.M) and
   'returned 45' in p.out, 'run --show-inlining says what became of each call', p.out, p.err)
rows = [json.loads(line) for line in inlay('run', obj('inline'), 'looks_up', '--ctx-in', ctx, '--show-inlining', '--json',
                                           '--no-inline=map').out.splitlines()]
ok([(r['helper'], r['inlined']) for r in rows if 'helper' in r] == [('bpf_map_lookup_elem', False), ('bpf_get_smp_processor_id', True)] and
   'switched off' in rows[0]['what'], 'also as JSON, with the reason where nothing was done', rows)
results = {inlay('run', obj('inline'), prog, '--ctx-in', ctx, *how).out.split('returned')[-1] + prog
           for prog in ('loops', 'looks_up') for how in ((), ('--interp',), ('--no-inline',), ('--no-inline=map,loop',))}
equal(len(results), 2, 'inlined or not, programs return the same')

# settings: read-only data, frozen by the loader
p = inlay('dump', 'lowered', obj('inline'), 'settled')
ok(p.rc == 0 and '%= 10' in p.out and '/= 10' in p.out and 'map[' not in p.out, 'a setting stands in the instruction that reads it',
   p.out, p.err)
for number in (0, 9, 10, 123456789, 0xffffffff):
    with open(ctx, 'wb') as f:
        f.write(number.to_bytes(8, 'little') + bytes(8))
    want = f'returned {number % 10 + number // 10 * 100 + 10000 & 0xffffffff}'
    outs = [inlay('run', obj('inline'), 'settled', '--ctx-in', ctx, *how).out for how in ((), ('--interp',))]
    ok(all(want in o for o in outs), f'and {number} is divided by it', outs)
    outs = [inlay('run', obj('inline'), 'one_of', '--ctx-in', ctx, *how).out for how in ((), ('--interp',))]
    ok(all(f'returned {9 if number & 1 else 7}' in o for o in outs), f'a load that reads one of two settings reads the right one ({number})',
       outs)

# a loop of no rounds: its function is gone, what loads it stays
for prog, value in (('no_rounds', 3), ('some_rounds', 12)):
    p = inlay('run', obj('inline'), prog, '--ctx-in', ctx)
    ok(f'returned {value}' in p.out, f'{prog} returns {value}', p.out, p.err)
    if platform.machine() == 'x86_64':
        p = inlay('dump', 'jited', obj('inline'), prog)
        ok(p.rc == 0, f'{prog} is compiled', p.err)
    if can_bpf():
        skip(f'xlated text of {prog} as in the kernel', can_bpf())
        continue
    texts = [inlay('dump', 'xlated', obj('inline'), prog, '--engine', engine).out for engine in ('user', 'kernel')]
    texts = [re.sub(r'id:\d+', 'id', t) for t in texts]
    ok(texts[0] == texts[1] and 'call' in texts[0], f'xlated text of {prog} as in the kernel', *texts)
done()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""inlay bench: rows, JSON, hits as the kernel selftests define them, checksums, wrong usage. Figures are not judged here."""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

INLAY = os.environ['INLAY']
tests = failed = 0


def ok(cond, name, *notes):
    global tests, failed
    tests += 1
    failed += not cond
    print(f'{"" if cond else "not "}ok {tests} - {name}')
    for note in notes if not cond else ():
        for line in str(note).splitlines()[:10]:
            print(f'# {line}')


def bench(*args):
    return subprocess.run([INLAY, 'bench', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250)


QUICK = ('-w', '0.01', '-d', '0.05')
VARIANTS = {'jit', 'slots', 'linux-inlined', 'linux-slowpath', 'linux-outlined'}

home = tempfile.TemporaryDirectory(prefix='inlay-bench-')  # gone with the process
folder = home.name
plot = os.path.join(folder, 'plot.svg')
p = bench('local-storage', '--json', '--plot', plot, *QUICK)
ok(p.returncode == 0 and not p.stderr, 'local-storage runs and says nothing on stderr in a pipe', p.stderr)
out = json.loads(p.stdout)
rows = out['rows']
ok(set(out) == {'machine', 'void', 'rows'} and {'cpu', 'kernel', 'mitigations'} <= set(out['machine']), 'one object: machine, void, rows')
user = [r for r in rows if r['engine'] == 'user']
want = {(n, o, v) for n in (1, 10, 16, 17, 24, 32, 100, 1000) for o in ('sequential', 'interleaved') for v in VARIANTS}
ok({(r['params']['num_maps'], r['params']['order'], r['variant']) for r in user} == want and len(user) == len(want),
   'a row for each number of maps, order and variant')
# a row has a figure only if its hits, important hits and the sum of all values read are what the definition gives
ok(all(r['mops'] and r['mops'] > 0 and abs(r['ns_per_op'] * r['mops'] - 1000) < 1 for r in user),
   'every user row counts the hits of the definition and reads the right values', [r for r in user if not r.get('mops')])
shares = {(r['params']['num_maps'], r['params']['order']): r['important_mops'] / r['mops'] for r in user if r.get('mops')}
for key, share in {(1, 'sequential'): 1, (10, 'sequential'): 0.1, (10, 'interleaved'): 5 / 14, (1, 'interleaved'): 1,
                   (1000, 'interleaved'): 335 / 1334}.items():
    ok(abs(shares.get(key, -1) - share) < 1e-3, f'important hits of {key[0]} maps, {key[1]}: {share:.4f} of all', shares.get(key))
kernel = [r for r in rows if r['engine'] == 'kernel']
if all(r['mops'] is None for r in kernel):
    ok(all(r['reason'] for r in kernel), 'the kernel engine says why it has no figure')
else:
    ok(all(r['mops'] for r in kernel), 'every kernel row counts the hits of the definition', [r for r in kernel if not r['mops']])
svg = xml.dom.minidom.parse(plot)
ok(len(svg.getElementsByTagName('polyline')) >= 5, 'the plot is XML and has a line a variant')

p = bench('local-storage-direct', 'local-storage-owners', 'local-storage-create', 'hashmap-insert', 'hashmap-lookup',
          'hashmap-full-update', 'entry', '--engine', 'user', '--json', *QUICK)
rows = json.loads(p.stdout)['rows']
ok(p.returncode == 0 and all(r['mops'] for r in rows) and
   {r['bench'] for r in rows} == {'local-storage-direct', 'local-storage-owners', 'local-storage-create', 'hashmap-insert',
                                  'hashmap-lookup', 'hashmap-full-update', 'entry'},
   'the other benchmarks do their work on the user engine', [r for r in rows if not r['mops']], p.stderr)
p = bench('compute', '--json', *QUICK)
rows = json.loads(p.stdout)['rows']
# a figure means: the answer of the same C code by the C compiler
ok(len({r['params']['section'] for r in rows}) == 12 and all(r['mops'] for r in rows if r['engine'] == 'user'),
   'twelve computations, each with the answer of the same C code', [r for r in rows if not r['mops']], p.stderr)
p = bench('hashmap-keys', '--engine', 'user', '--json', *QUICK)
rows = json.loads(p.stdout)['rows']
ok(len(rows) == 9 and all(r['mops'] for r in rows) and sum(r['params']['colliding'] for r in rows) == 1,
   'keys of four sizes, there and absent, and keys made to collide, all found or not as they should be', rows)
p = bench('local-storage-owners', '--engine', 'kernel', *QUICK)
ok('n/a: the kernel runs a program with the task that is there' in p.stdout, 'what an engine cannot do is n/a with the reason', p.stdout)

p = bench('compile', 'threads', 'memory', '--engine', 'user', '--json', *QUICK)
rows = json.loads(p.stdout)['rows'] if not p.returncode else []
ok([r['params'].get('num_insns') for r in rows if r['bench'] == 'compile'] == [2, 100, 1000, 10000] and
   all(r['mops'] for r in rows if r['bench'] == 'compile'), 'the compiler is timed for four sizes', rows, p.stderr)
ok({(r['params']['section'], r['params']['num_threads']) for r in rows if r['bench'] == 'threads' and r['mops']} ==
   {(s, n) for s in ('empty', 'storage', 'lookup', 'update', 'update-large') for n in (1, 2)}, 'one thread and two do all their work', rows)
held = {r['params']['section']: r.get('bytes_per_element') or 0 for r in rows if r['bench'] == 'memory'}
ok(len(held) == 5 and all(8 < v < 2000 for v in held.values()) and held['storage-beyond-16'] > held['storage-more'],
   'an element takes more than its value, the first beyond 16 more than the ones before', held)

before, after, junk = (os.path.join(folder, n) for n in ('before.json', 'after.json', 'junk.json'))
one = {'bench': 'entry', 'params': {}, 'engine': 'user', 'variant': None, 'ns_per_op': 4.0, 'ns_spread': 0.1}
two = {'bench': 'hashmap', 'params': {'num_keys': 10}, 'engine': 'user', 'variant': 'jit', 'ns_per_op': 8.0, 'ns_spread': 0.1}
with open(before, 'w') as f:
    json.dump({'machine': {'odd': [1, {'rows': ['"']}]}, 'void': False, 'rows': [one, two]}, f, indent=2)
with open(after, 'w') as f:
    json.dump({'rows': [dict(two, ns_per_op=4.0), dict(one, ns_per_op=4.1)]}, f)
p = bench('--compare', before, after)
ok(p.returncode == 0 and '(-50.0%)' in p.stdout and '(  ~  )' in p.stdout and 'over 2 rows: -28.4%' in p.stdout,
   'two runs compared: halved, unchanged within its interval, geometric mean', p.stdout, p.stderr)
text = open(before).read()
for name, bad in (('cut', text[:len(text) // 2]), ('empty', ''), ('deep', '[' * 100000), ('without rows', '{"rows":[]}'), ('more behind', text + '}')):
    with open(junk, 'w') as f:
        f.write(bad)
    p = bench('--compare', junk, after)
    ok(p.returncode == 1 and junk in p.stderr and len(p.stderr.splitlines()) == 1 and not p.stdout, f'a file that is {name}: one line', p)
p = bench('--compare', os.path.join(folder, 'none'), after)
ok(p.returncode == 1 and 'No such file' in p.stderr, 'a file that is not there', p)

obj = os.environ.get('BENCH_OBJ')
if obj:
    p = bench('--obj', obj, 'entry_raw', '--json', *QUICK)
    rows = json.loads(p.stdout)['rows'] if not p.returncode else []
    ok(len(rows) == 2 and rows[0]['mops'] and rows[0]['params'] == {'section': 'entry_raw', 'file': obj},
       'a program of a given object is timed', p.stdout, p.stderr)
    p = bench('--obj', obj, '--engine', 'user', *QUICK)
    ok(p.returncode == 1 and 'holds 2 programs: name one' in p.stdout, 'an object of two programs wants a name', p)
    p = bench('--obj', obj, 'none', '--engine', 'user', *QUICK)
    ok(p.returncode == 1 and 'no such program' in p.stdout, 'a program that is not there', p)

for args, word in ((('--compare', before), 'compare'), (('nothing',), 'nothing'), (('--engine', 'moon'), 'moon'), (('--variant', 'fast'), 'fast'), (('--trials', '0'), 'trials'),
                   (('-d', '0'), '')):
    p = bench(*args)
    ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and word in p.stderr and not p.stdout, f'{" ".join(args)}: usage error',
       p.returncode, p.stderr)
print(f'1..{tests}')
sys.exit(1 if failed else 0)

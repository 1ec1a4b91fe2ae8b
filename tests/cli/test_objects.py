#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run, check and dump on objects of this folder: counts equal the text report, refusals name what and where."""
import collections
import json
import lzma
import os
import re
import struct
import tempfile

from tapcli import DATA, OBJECTS, can_bpf, done, equal, inlay, ok, skip

HOG = os.path.join(DATA, 'hog.perf.data.zst')


def obj(name):
    return os.path.join(OBJECTS, name + '.bpf.o')


# what the text rendering of the same recording says
text = lzma.open(os.path.join(DATA, 'hog.perf.txt.xz'), 'rt').read()
switches = collections.Counter(re.findall(r'sched_switch:.* next_comm=(.*) next_pid=', text))
count = {e: len(re.findall(rf'sched:{e}:', text)) for e in (
    'sched_switch', 'sched_wakeup', 'sched_wakeup_new', 'sched_process_fork', 'sched_process_exit', 'sched_migrate_task')}

p = inlay('run', obj('events'), '-i', HOG, '--maps', '--json')
ok(p.rc == 0 and not p.err, 'run replays a recording through an object of one\'s own', p.err)
objs = [json.loads(line) for line in p.out.splitlines()]
maps = {o['map'].split('.')[-1]: o for o in objs if 'map' in o}
progs = {o['prog']: o for o in objs if 'prog' in o}
prints = [o for o in objs if 'printk' in o]
equal({e['key']['comm']: e['value'] for e in maps['switches']['entries']}, dict(switches),
      'switches counted by name equal those of the text report')
bss = maps['bss']['entries'][0]['value']
equal((bss['nr_wakeups'], bss['nr_new'], bss['nr_forks'], bss['nr_exits'], bss['nr_migrations']),
      (count['sched_wakeup'], count['sched_wakeup_new'], count['sched_process_fork'], count['sched_process_exit'],
       count['sched_migrate_task']), 'globals count every event once')
equal((progs['count_switch']['runs'], progs['count_wakeup']['runs']), (count['sched_switch'], count['sched_wakeup']),
      'each handler runs exactly once an event')
waits = sum(e['value'] for e in maps['waits']['entries'])
rqs = inlay('runqslower', '-i', HOG, '--json', '0').out.splitlines()
woken = [json.loads(line) for line in rqs]
ok(0 < waits <= count['sched_wakeup'], 'the wait histogram holds waits of wake-ups', waits)
ok(maps['woken_at']['type'] == 'task_storage' and len(maps['woken_at']['entries']) > 5 and
   all(set(e['key']) == {'tid', 'comm'} for e in maps['woken_at']['entries']), 'task storage is listed by task')
equal([o['printk'] for o in prints], [f'fork number {i + 1}, {(i + 1) * 1000003} and {6 - i}' for i in range(count['sched_process_fork'])],
      'bpf_printk() text is shown, in order')
p = inlay('run', obj('events'), 'count_switch', '-i', HOG, '--maps')
ok(p.rc == 0 and re.search(rf'^count_switch: {count["sched_switch"]} runs, ', p.out, re.M) and 'count_wakeup:' not in p.out,
   'naming a program runs only that one', p.out)
ok(f'  {{"comm":"crunch"}}: {switches["crunch"]}\n' in p.out, 'maps in text show typed keys and values', p.out)
again = inlay('run', obj('events'), '-i', HOG, '--maps', '--json').out
strip = re.compile(r'"mean_ns":[0-9.]+')
ok(strip.sub('', again) == strip.sub('', '\n'.join(json.dumps(o, separators=(',', ':')) for o in objs) + '\n') or
   [o for o in map(json.loads, again.splitlines()) if 'prog' not in o] == [o for o in objs if 'prog' not in o],
   'two runs give the same maps')

# a program by itself
with tempfile.NamedTemporaryFile() as f:
    f.write(struct.pack('<QQ', 40, 2))
    f.flush()
    p = inlay('run', obj('once'), '--ctx-in', f.name, '--repeat', '25', '--maps', '--json')
    objs = [json.loads(line) for line in p.out.splitlines()]
    ok(p.rc == 0 and objs[0]['retval'] == 42 and objs[0]['runs'] == 25, 'run returns what the program does, N times', p.out,
       p.err)
    equal(objs[1]['entries'][0]['value'], {'runs': 25, 'low': -3, 'colour': 'GREEN', 'yes': True, 'text': 'hello',
                                           'list': [0, 7, 0]}, 'values are printed by their types')
    if not can_bpf():
        k = inlay('run', '--engine', 'kernel', obj('once'), '--ctx-in', f.name, '--repeat', '25', '--maps', '--json')
        ko = [json.loads(line) for line in k.out.splitlines()]
        ok(k.rc == 0 and ko[0]['retval'] == 42 and ko[1] == objs[1], 'the kernel gives the same', k.out, k.err)
    else:
        skip('the kernel gives the same', can_bpf())

# libbpf has error codes of its own
with tempfile.NamedTemporaryFile(suffix='.bpf.o') as f:
    with open(obj('events'), 'rb') as good:
        blob = good.read()
    load = re.search(rb'\x18[\x01-\x09]\0{14}', blob)
    f.write(blob[:load.start()] + b'\x17' + blob[load.start() + 1:])
    f.flush()
    p = inlay('check', f.name)
    ok(p.rc != 0 and 'invalid relo' in p.err and 'Unknown' not in p.err,
       "a relocation of what is no load: libbpf's own error code has its words", p.err)

# refusals
for name, pattern in (('refused', r"reads_through_a_number is refused: R1 invalid mem access 'scalar' \(at: return \*p;"),
                      ('missing_field', r'wants_shoe_size is refused: .*task_struct.*shoe_size'),
                      ('odd_map', r"map 'odd_map'.*inlay has no maps of type cpumap"),
                      ('section', r"'brews'.*'coffee/brew'"),
                      ('nobtf', r'BTF')):
    p = inlay('run', obj(name), '-i', HOG)
    line = p.err.splitlines()
    ok(p.rc == 1 and not p.out and len(line) == 1 and re.search(pattern, line[0]) and obj(name) in line[0],
       f'{name}: refused with one line that names what and where', p.err, p.out)
p = inlay('run', obj('events'), 'no_such', '-i', HOG)
ok(p.rc == 1 and 'no program no_such' in p.err, 'a program that is not there is named', p.err)
p = inlay('run', obj('events'))
ok(p.rc == 2 and 'name one' in p.err, 'several programs and none named is a usage error', p.err)
p = inlay('run', obj('events'), 'count_switch')
ok(p.rc == 1 and '-i FILE' in p.err, 'a program that cannot run by itself says what to do', p.err)

# check
p = inlay('check', obj('events'), obj('once'))
ok(p.rc == 0 and len(re.findall(r' accepted +\d+ +\d+$', p.out, re.M)) == 7 and p.out.startswith('types: '),
   'check accepts what is right, and says whose types it used', p.out, p.err)
p = inlay('check', obj('refused'))
ok(p.rc == 1 and re.search(r"> return \*p; .*refused.bpf.c:18\n +R1 invalid mem access 'scalar'", p.out),
   'check shows a refusal beside its source line', p.out)
p = inlay('check', '--csv', obj('refused'))
lines = p.out.splitlines()
ok(lines[0] == 'file_name,prog_name,verdict,duration,total_insns,total_states' and
   re.match(r'refused.bpf.o,fine,success,\d+,2,\d+$', lines[1]) and ',failure,' in lines[2], 'check --csv has veristat\'s columns',
   p.out)
p = inlay('check', '--csv=full', obj('refused'), obj('nobtf'))
lines = p.out.splitlines()
ok(lines[0] == 'file,prog,type,verdict,errno,insns,states,reason' and
   lines[2] == "refused.bpf.o,reads_through_a_number,raw_tracepoint,failure,13,2,0,\"R1 invalid mem access 'scalar'\"" and
   lines[3].startswith('nobtf.bpf.o,,,skip,'), 'check --csv=full has the oracle\'s columns', p.out)
rows = [json.loads(line) for line in inlay('check', '--json', obj('refused')).out.splitlines()]
ok([r['verdict'] for r in rows] == ['success', 'failure'] and 'scalar' in rows[1]['reason'] and '*p' in rows[1]['source'],
   'check --json has verdict, reason and source', rows)
for opt in ('--repeat', '--data-in', '--data-out', '--ctx-in', '--ctx-out'):
    p = inlay('run', obj('events'), '-i', HOG, opt, '3')
    ok(p.rc == 2 and not p.out and opt in p.err and '-i' in p.err, f'run: {opt} and -i are one too many', p.rc, p.err)
if os.path.exists('/sys/kernel/btf/vmlinux'):
    p = inlay('run', '--btf', '/sys/kernel/btf/vmlinux', obj('events'), 'count_switch', '-i', HOG)
    q = inlay('run', obj('events'), 'count_switch', '-i', HOG)
    ok(p.rc == 0 and p.out.split(' runs')[0] == q.out.split(' runs')[0] and 'read as 0' in p.err and 'read as 0' not in q.err,
       'run --btf says that what nobody fills in is 0', p.err, q.err)
    p = inlay('check', '--btf', '/sys/kernel/btf/vmlinux', '--btf', '/sys/kernel/btf/vmlinux', obj('once'))
    ok(p.rc == 0 and len(re.findall('accepted', p.out.splitlines()[5])) == 2, 'several --btf make a column each', p.out)
    if not can_bpf():
        a = inlay('check', '--csv=full', obj('events'), obj('once'), obj('refused'))
        b = inlay('check', '--engine', 'kernel', '--csv=full', obj('events'), obj('once'), obj('refused'))
        ok(a.out == b.out or [r.split(',')[:5] for r in a.out.splitlines()] == [r.split(',')[:5] for r in b.out.splitlines()],
           'the kernel and inlay agree on every program', a.out, b.out)

# dump
p = inlay('dump', 'bytecode', obj('events'), 'count_wakeup')
ok(p.rc == 0 and 'count_wakeup: (section tp_btf/sched_wakeup)' in p.out and 'map[woken_at]' in p.out and
   'call bpf_task_storage_get#156' in p.out and '&nr_wakeups' in p.out and
   re.search(r'^; nr_wakeups\+\+; @ events.bpf.c:\d+$', p.out, re.M), 'dump bytecode names maps, helpers, globals, lines', p.out)
ok(re.search(r'^ +0: \(', p.out, re.M) and '(95) exit' in p.out, 'and shows every instruction to the exit', p.out)
p = inlay('dump', 'xlated', obj('events'), 'count_wakeup')
ok(p.rc == 0 and 'map[id:' in p.out and '; nr_wakeups++; @ events.bpf.c:' in p.out, 'dump xlated shows what runs', p.out, p.err)
everything = inlay('dump', 'bytecode', obj('events')).out
ok(all(f'{name}: (section' in everything for name in progs), 'without a program all are dumped')
funcs = [json.loads(line) for line in inlay('dump', 'bytecode', obj('events'), '--json').out.splitlines()]
ok({f['func'] for f in funcs} == set(progs) and all(f['insns'][-1]['text'] == '(95) exit' for f in funcs), 'dump --json', funcs)
p = inlay('dump', 'xlated', obj('refused'), 'reads_through_a_number')
ok(p.rc == 1 and 'is refused' in p.err, 'a refused program has no xlated form', p.err)
p = inlay('dump', 'bytecode', obj('events'), 'no_such')
ok(p.rc == 1 and 'no program no_such' in p.err, 'dump names a program that is not there', p.err)
done()

# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of bad input: exit status 1 and one line that names the file, what is wrong, where, and what to do."""
import lzma
import os
import random
import shutil
import struct
import subprocess

import recwriter as w
from reclib import DIR, DUMP, dump, path, put
from tap import done, ok, skip

L = w.Layout()
EVENTS = w.workload(n=120)
PERF, DAT, DAT7 = w.perf_data(EVENTS, L), w.trace_dat(EVENTS, L), w.trace_dat(EVENTS, L, 7)
PIPE, TEXT = w.perf_data(EVENTS, L, pipe=True), w.text(EVENTS, 'ftrace')


def refused(name, data, *words, **kw):
    """The one line of refusal."""
    p = put('bad.input', data) if data is not None else kw.pop('file')
    st, out, err = dump(p, **kw)
    lines = [l for l in err.splitlines() if not l.startswith('warning:')]
    return ok(st == 1 and len(lines) == 1 and (p in lines[0] or p == '-' and 'standard input' in lines[0]) and
              all(x in lines[0] for x in words), name + ': ' + ', '.join(words), '%d %s' % (st, err))


refused('no such file', None, 'No such file', file=path('nowhere'))
refused('a directory', None, 'a directory', 'perf script', file=DIR)
refused('empty', b'', 'empty', 'perf record')
refused('empty from a pipe', None, 'empty', file='-', stdin=b'')
refused('empty gzip', w.gz(b''), 'empty')
refused('an ELF file', open('/proc/self/exe', 'rb').read(5000), 'an ELF file', 'perf.data')
refused('a PNG', b'\x89PNG\r\n\x1a\n' + b'\0' * 99, 'a PNG image')
refused('a zip', b'PK\x03\x04' + b'\0' * 99, 'zip')
refused('bzip2', b'BZh91AY&SY' + b'\0' * 99, 'bzip2', 'unpack')
refused('random bytes', random.Random(1).randbytes(5000), 'not a recording')
refused('zeros', b'\0' * 5000, 'not a recording')
refused('prose', b'It was a dark and stormy night.\n' * 40, 'not a recording', 'cpu', '40')
refused('one long line', b'x' * 200000, 'not a recording')
refused('text without CPUs', b'perf 123 765.537988: sched:sched_switch: prev_comm=a prev_pid=1\n' * 3, 'sched_switch',
        '-F comm,tid,cpu,time,event,trace')
refused('text of unknown fields', b'a-1 [000] 1.000001: sched_switch: whatever=1 is=2\n' * 3, 'line 1', '2 others')
refused('text with counter stamps', b'a-1 [000] 123456: sched_wakeup: comm=a pid=1 prio=1 target_cpu=000\n', 'line 1',
        'trace_clock')
refused('text of other events', b'a-1 [000] 1.000001: sys_enter: NR 1 (0)\n' * 9, 'no scheduler events', '9 others',
        'perf record')
refused('text with CPU 99999', b'a-1 [99999] 1.000001: sched_wakeup: comm=a pid=1 prio=1 target_cpu=000\n', 'CPU 99999')

# ---- perf.data

unfinished = bytearray(w.perf_data(EVENTS, L, cut_header=True))
unfinished[72:104] = bytes(32)
refused('perf.data of another byte order', b'2ELIFREP' + b'\0' * 200, 'byte order', 'perf script')
refused('perf.data of old', b'PERFFILE' + b'\0' * 200, 'perf script')
refused('perf.data, only its magic', b'PERFILE2', 'truncated')
refused('perf.data, half a header', PERF[:50], 'truncated')
refused('unfinished perf.data', unfinished, 'unfinished', 'record again')
refused('perf.data without tracing data', w.perf_data(EVENTS, L, tracing=False), 'formats', 'perf script')
data_at = struct.unpack_from('<Q', PERF, 40)[0]
refused('perf.data cut in its data', PERF[:data_at + 500], 'truncated', 'offset %d' % data_at, 'missing')
refused('perf.data cut in its formats', PERF[:-4000], 'truncated', 'feature')
bad = bytearray(PERF)
struct.pack_into('<H', bad, data_at + 6, 3)
refused('perf.data with a record of 3 bytes', bytes(bad), 'record of 3 bytes', 'offset %d' % data_at)
first = next(o for o in range(data_at, len(PERF), 8) if struct.unpack_from('<I', PERF, o)[0] == 9)
bad = bytearray(PERF)
struct.pack_into('<H', bad, first + 6, 32)
refused('perf.data with a cut sample', bytes(bad), 'sample at offset %d' % first)
refused('perf.data with no scheduler events', w.perf_data([], L, tracing=True).replace(b'name: sched_', b'name: other_'),
        'no scheduler events', 'perf record')
refused('perf.data without CPUs', w.perf_data(EVENTS, L, w.DEFAULT & ~w.CPU), 'no CPU numbers', '-a')
refused('perf.data without times', w.perf_data(EVENTS, L, w.DEFAULT & ~w.TIME), 'no times', '-T')
refused('perf.data without raw data', w.perf_data(EVENTS, L, w.DEFAULT & ~w.RAW), 'no tracepoint fields', '-R')
refused('perf.data whose comm field is gone', w.perf_data(EVENTS, w.Layout(rename={'prev_state': 'prev_stat'})),
        'sched_switch', "'prev_state'", 'perf script')
refused('perf.data with CPU 70000', w.perf_data([dict(e, cpu=70000) for e in EVENTS], L), 'CPU 70000')
z = bytearray(w.perf_data(EVENTS, L, compress=True))
at = next(o for o in range(struct.unpack_from('<Q', z, 40)[0], len(z)) if struct.unpack_from('<I', z, o)[0] == 81)
z[at + 12:at + 20] = b'\xff' * 8
refused('perf.data with a broken compressed record', bytes(z), 'compressed record at offset %d' % at)
for n in range(0, len(PERF) - 1, 1499):
    st, out, err = dump(put('t', PERF[:n]))
    if st != 1 or len(err.splitlines()) != 1:
        ok(False, 'perf.data cut at %d' % n, err)
        break
else:
    ok(True, 'perf.data cut anywhere is refused with one line')
short = 0
for n in range(100, len(PIPE) - 1, 997):
    st, out, err = dump(put('t', PIPE[:n]))
    if not (st == 0 and ('left out' in err or not err)) and not (st == 1 and len(err.splitlines()) in (1, 2)):
        ok(False, 'pipe-mode perf.data cut at %d' % n, err)
        break
    short += st == 0
else:
    ok(short > 5, 'pipe-mode perf.data cut anywhere: the whole records or a refusal')

# ---- trace.dat

refused('trace.dat, only its magic', DAT[:10], 'truncated')
refused('trace.dat version 9', DAT.replace(b'tracing6\0', b'tracing9\0', 1), "version '9'")
refused('trace.dat with 3-byte longs', DAT[:13] + b'\x03' + DAT[14:], 'long')
refused('trace.dat cut in its header', DAT[:3000], 'truncated', 'offset')
refused('trace.dat cut in its data', DAT[:-100], 'truncated', 'CPU 3')
refused('trace.dat v7 cut in its data', DAT7[:-5000], 'truncated')
refused('trace.dat of a latency tracer', DAT.replace(b'flyrecord\0', b'latency  \0', 1), 'latency', 'trace-cmd report')
refused('trace.dat whose field is gone', w.trace_dat(EVENTS, w.Layout(rename={'target_cpu': 'cpu_target'})),
        "'target_cpu'", 'perf script')
refused('trace.dat with no scheduler events', w.trace_dat([e for e in EVENTS if e['kind'] == 'other'], L),
        'no scheduler events')
huge = bytearray(DAT)
at = DAT.index(b'options  \0') - 4
struct.pack_into('<I', huge, at, 1 << 30)
refused('trace.dat of 2^30 CPUs', bytes(huge), 'CPUs')
for version, data in ((6, DAT), (7, DAT7)):
    for n in range(0, len(data) - 4096, 1733):
        st, out, err = dump(put('t', data[:n]))
        if st != 1 or len(err.splitlines()) != 1:
            ok(False, 'trace.dat v%d cut at %d' % (version, n), err)
            break
    else:
        ok(True, 'trace.dat v%d cut anywhere is refused with one line' % version)
# What libtracecmd does with nonsense is its own affair; we survive and say so.
r, died, fine = random.Random(3), 0, True
for n in range(150):
    b = bytearray(DAT if n % 2 else DAT7)
    for _ in range(r.choice([1, 4, 30])):
        b[r.randrange(10, len(b))] = r.choice([0, 0xff, r.randrange(256)])
    st, out, err = dump(put('t', bytes(b)))
    lines = [l for l in err.splitlines() if not l.startswith('warning')]
    fine &= st in (0, 1) and len(lines) == (st == 1)
    died += 'input unreadable' in err
ok(fine, 'trace.dat with random damage is read or refused with one line')
print('# the reading child failed on %d of 150' % died)

# ---- compressed

for name, data in (('gzip', w.gz(PERF)), ('xz', lzma.compress(PERF)), ('zstd', w.Zstd().compress(PERF))):
    refused(name + ' cut short', data[:len(data) // 2], name, 'offset')
    b = bytearray(data)
    b[len(b) // 2] ^= 0xff
    b[len(b) // 2 + 1] ^= 0xff
    p = put('bad', bytes(b))
    st, out, err = dump(p)
    ok(st == 1 and p in err and len(err.splitlines()) == 1, name + ' with flipped bits is refused with one line', err)
st, out, err = dump(put('bomb', w.gz(b'\0' * 10**6)), '-s', '100000')
ok(st == 1 and 'more than 100000 bytes' in err and len(err.splitlines()) == 1, 'unpacking has a limit', err)
st, out, err = dump(put('t', w.gz(PERF)), env={'TMPDIR': '/nonexistent'})
ok(st == 1 and '/nonexistent' in err and 'TMPDIR' in err, 'no place to unpack: says where and what to do', err)
deep = PERF
for _ in range(5):
    deep = w.gz(deep)
refused('compressed five times', deep, 'compressed more than')
if os.geteuid() == 0:
    mnt = path('small')
    os.mkdir(mnt)
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', mnt], stderr=subprocess.DEVNULL).returncode == 0:
        st, out, err = dump(put('t', w.gz(b'\0' * 10**7)), env={'TMPDIR': mnt})
        ok(st == 1 and 'No space left' in err and mnt in err and 'TMPDIR' in err, 'a full disk says so', err)
        subprocess.run(['umount', mnt])
    else:
        skip('a full disk says so', 'cannot mount')
    p = put('secret', PERF)
    os.chmod(p, 0)
    shutil.copy(DUMP, path('dump'))
    os.chmod(DIR, 0o755)
    os.chmod(path('dump'), 0o755)
    r = subprocess.run([path('dump'), p], user=65534, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ok(r.returncode == 1 and b'Permission denied' in r.stderr, 'a file that may not be read', r.stderr)
else:
    skip('a full disk says so', 'not root')

done()

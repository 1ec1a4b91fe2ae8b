#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input of every sort gets the exit status of the contract (1 the job failed, 2 usage), nothing on stdout, and one
line on stderr that says what is wrong, where (it names the file or option), and what to do about it where that is not
plain. Never a crash, a hang or silence.

Each case names words that its line must hold. Where input is cut, what was whole before the cut may be used, if stderr
says that something is missing.
"""
import functools
import gzip
import json
import lzma
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zipfile

from lib import DATA, INLAY, OBJECTS, TOOLS, done, ok, run, skip

home = tempfile.TemporaryDirectory(prefix='inlay-bad-')  # gone with the process
tmp = home.name
os.chmod(tmp, 0o755)


def path(name):
    return os.path.join(tmp, name)


def put(name, data):
    with open(path(name), 'wb') as f:
        f.write(data)
    return path(name)


def data(name):
    with open(os.path.join(DATA, name), 'rb') as f:
        return f.read()


def unzstd(blob):
    return subprocess.run(['zstd', '-qdc'], input=blob, stdout=subprocess.PIPE, check=True).stdout


@functools.lru_cache
def plain(name):
    """A recording that ships, unpacked."""
    blob = data(name)
    return unzstd(blob) if name.endswith('.zst') else lzma.decompress(blob) if name.endswith('.xz') else gzip.decompress(blob)


def one_line(name, p, status, *words, stdout_may=False, context=False):
    """context: more lines may follow (the verifier's)."""
    lines = p.err.splitlines()
    problems = []
    if p.rc != status:
        problems.append(f'exit status {p.rc}, by contract {status}')
    if p.out and not stdout_may:
        problems.append(f'{len(p.out)} bytes on stdout')
    if not lines or not lines[0].startswith('inlay: '):
        problems.append('no "inlay: ..." line')
    elif len(lines) > 1 and not context:
        problems.append(f'{len(lines)} lines on stderr')
    for word in words:
        if lines and not re.search(word, lines[0]):
            problems.append(f'the line lacks {word!r}')
    if re.search(r'AddressSanitizer|runtime error:|LeakSanitizer|Unknown error|Assertion', p.err):
        problems.append('a sanitizer\'s report, an assertion or an unknown error')
    if lines and len(lines[0]) > 600:
        problems.append(f'{len(lines[0])} characters are no line')
    return ok(not problems, name, *problems, *lines[:3])


def bad(name, args, status, *words, **kw):
    how = {k: kw.pop(k) for k in list(kw) if k in ('stdout_may', 'context')}
    return one_line(name, run(*args, **kw), status, *words, **how)


def rqs(name, file, *words, **kw):
    bad(name, ('runqslower', '-i', file, '5ms'), 1, re.escape(os.path.basename(file)), *words, **kw)


# ---- the command line

SEE = 'see \'inlay.*--help\''
for args, words in (
        ((), ('no command', SEE)),
        (('brew',), ("unknown command 'brew'", SEE)),
        (('-i', 'x'), ("unknown option '-i'", SEE)),
        (('runqslower', '--tea'), ("unknown option '--tea'", SEE)),
        (('runqslower', '-z'), ("unknown option '-z'", SEE)),
        (('runqslower', '-i'), ('--input', 'needs a value')),
        (('runqslower', '--json=1'), ('--json', 'takes no value')),
        (('runqslower', '5 parsecs'), ("MIN: '5 parsecs'", 'no time', '5ms')),
        (('runqslower', '-1'), ("MIN: '-1'", 'negative')),
        (('runqslower', '--', '-1'), ("MIN: '-1'", 'negative')),
        (('runqslower', '-1ms'), ("MIN: '-1ms'", 'negative')),
        (('runqslower', ''), ("MIN: ''", 'no time')),
        (('runqslower', 'nan'), ("MIN: 'nan'", 'no time')),
        (('runqslower', 'inf'), ("MIN: 'inf'", 'no time')),
        (('runqslower', '0x10'), ("MIN: '0x10'", 'no time')),
        (('runqslower', '5ms 6ms'), ('MIN', 'no time')),
        (('runqslower', '5MS'), ('MIN', 'no time')),
        (('runqslower', '18446744073709551616ns'), ('MIN', 'too long')),
        (('runqslower', '9' * 400), ('MIN',)),
        (('runqslower', '5ms', '6ms'), ('at most 1 argument', r'\[MIN\]')),
        (('runqslower', '-d', '-5'), ('--duration', 'negative')),
        (('runqslower', '-d', '0'), ('--duration',)),
        (('runqslower', '-p', '0'), ('--pid', "'0'")),
        (('runqslower', '-p', 'init'), ('--pid', "'init'")),
        (('runqslower', '-p', '-1'), ('--pid', "'-1'")),
        (('runqslower', '-p', '4294967297'), ('--pid',)),
        (('runqslower', '-t', ''), ('--tid',)),
        (('runqslower', '-C', '9999999'), ('--cpu',)),
        (('runqslower', '-C', '1-'), ('--cpu',)),
        (('runqslower', '-C', '1,,2'), ('--cpu',)),
        (('runqslower', '-C', '1,'), ('--cpu',)),
        (('runqslower', '--storage', 'disk'), ('--storage', "'disk'", 'task, hash')),
        (('runqslower', '--metric', 'x'), ('--metric', 'wakeup')),
        (('runqslower', '--attach', 'kprobe'), ('--attach', 'tp_btf')),
        (('runqslower', '--max-lost', '-1'), ('--max-lost',)),
        (('--engine', 'diesel', 'check', 'x'), ('--engine', "'diesel'")),
        (('runqslower', '--engine', 'user'), ('recording', '-i FILE')),
        (('run',), ('OBJ', SEE)),
        (('run', '--repeat', '0', 'x.o'), ('--repeat',)),
        (('check',), ('OBJ', SEE)),
        (('check', '--csv=odd', 'x.o'), ('--csv', 'odd')),
        (('dump',), ('bytecode', SEE)),
        (('dump', 'sideways', 'x.o'), ('sideways',)),
):
    bad(f'usage: inlay {" ".join(repr(a) if not a or " " in a else a[:30] for a in args)}', args, 2, *words)

# An option given twice: the last counts, as everywhere; never a crash, never two files.
hog = put('hog', plain('hog.perf.data.zst'))
storm = put('storm', plain('storm.trace.dat.zst'))
twice = run('runqslower', '-i', storm, '-i', hog, '--json', '--json', '-C', '2', '--storage', 'hash', '--storage', 'task', '5ms')
once = run('runqslower', '-i', hog, '--json', '-C', '2', '5ms')
ok(twice.rc == 0 and twice.stdout == once.stdout and '"tid"' in once.out, 'options given twice: the last counts', twice.err)

# ---- recordings that are none

rng = random.Random(20240607)
for name, blob, words in (
        ('empty', b'', ('empty', 'record')),
        ('one-byte', b'x', ('not a recording',)),
        ('random', rng.randbytes(300000), ('not a recording', 'perf.data|trace.dat')),
        ('zeros', bytes(300000), ('not a recording', 'perf.data|trace.dat')),
        ('ones', b'\xff' * 300000, ('not a recording',)),
        ('random-after-perf-magic', b'PERFILE2' + rng.randbytes(300000), ('damaged|truncated',)),
        ('random-after-perf-pipe-magic', b'PERFILE2' + struct.pack('<Q', 16) + rng.randbytes(300000), ('',)),
        ('swapped-perf-magic', b'2ELIFREP' + rng.randbytes(3000), ('',)),
        ('random-after-trace-magic', b'\x17\x08\x44tracing6\0\0\x08\0\x10\0\0' + rng.randbytes(300000), ('',)),
        ('trace-of-version-99', b'\x17\x08\x44tracing99\0\0\x08\0\x10\0\0' + rng.randbytes(3000), ('99|version',)),
        ('random-after-gzip-magic', b'\x1f\x8b\x08\0' + rng.randbytes(30000), ('gzip',)),
        ('random-after-xz-magic', b'\xfd7zXZ\0' + rng.randbytes(30000), ('xz',)),
        ('random-after-zstd-magic', b'\x28\xb5\x2f\xfd' + rng.randbytes(30000), ('zstd',)),
        ('png', b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + rng.randbytes(5000), ('PNG', 'perf.data')),
        ('pdf', b'%PDF-1.7\n' + rng.randbytes(5000), ('PDF|not a recording', 'perf.data')),
        ('letter', b'Dear reader,\n\nit waited for a CPU.\n' * 50, ('not a recording', 'form')),
        ('one-long-line', b'a' * 3000000, ('',)),
        ('mail-about-sched_switch', b'Have you seen sched_switch: in the trace?\n' * 9, ('sched_switch', 'perf script|trace-cmd')),
        ('python', b'#!/usr/bin/python3\nimport os\nprint(1)\n', ('not a recording',)),
        ('nul-text', b'comm-1 [000] 1.000000: sched_switch:\0\0\0\n' * 5, ('',)),
        ('gzip-of-nothing', gzip.compress(b''), ('empty',)),
        ('gzip-of-random', gzip.compress(rng.randbytes(30000)), ('not a recording',)),
        ('xz-of-a-letter', lzma.compress(b'Dear reader\n' * 99), ('not a recording',)),
):
    rqs(f'recording: {name}', put(name, blob), *words)
with zipfile.ZipFile(path('archive.zip'), 'w') as z:
    z.writestr('perf.data', plain('hog.perf.data.zst'))
rqs('recording: a zip archive', path('archive.zip'), 'zip', 'unpack')
subprocess.run(['tar', '-C', tmp, '-cf', path('archive.tar'), 'hog'], check=True)
rqs('recording: a tar archive', path('archive.tar'), 'not a recording')
rqs('recording: an ELF program', INLAY, 'ELF', 'perf.data')
if os.path.exists(os.path.join(OBJECTS, 'events.bpf.o')):
    rqs('recording: a BPF object', os.path.join(OBJECTS, 'events.bpf.o'), 'ELF', 'perf.data')
rqs('recording: this program text', os.path.abspath(__file__), 'not a recording|form|no scheduler events.*perf record')
rqs('recording: not there', path('none'), 'No such file')
rqs('recording: a folder not there', path('none/none'), 'No such file')
rqs('recording: a folder', tmp, 'directory')
rqs('recording: through a file as if a folder', path('hog') + '/x', 'Not a directory')
rqs('recording: a name too long', path('n' * 300), 'too long')
bad('recording: no name', ('runqslower', '-i', ''), 1, "''|empty|no name|--input")
os.symlink('loop', path('loop'))
rqs('recording: a link to itself', path('loop'), 'levels of symbolic links|loop')
sock = path('fifo')
os.mkfifo(sock)
with subprocess.Popen(['sh', '-c', f'exec 3>{sock}; exit 0']) as writer:
    rqs('recording: a pipe nobody writes to', sock, 'empty')

# ---- recordings that are cut

WHOLE = {name: run('runqslower', '-i', os.path.join(DATA, name), '--json', '1ms').out for name in (
    'hog.perf.data.zst', 'throttled.perf.data.xz', 'storm.trace.dat.zst', 'hog.ftrace.txt.gz', 'storm.trace.txt.xz')}


def cuts(size):
    fixed = [2, 7, 9, 15, 17, 63, 103, 105, 255, 1000, 4095, 4097]
    return sorted({n for n in fixed + [size * i // 12 for i in range(1, 12)] + [size - 4097, size - 513, size - 64,
                                                                               size - 9, size - 2, size - 1] if 0 < n < size})


def lost(text):
    """Of the summary, the last line."""
    return json.loads(text.splitlines()[-1])['summary']['lost'] if text else 0


def cut(name, blob, whole, at_most):
    """Nothing may crash or be silent: an error of one line; or rows, and a warning or a loss in the counts."""
    problems = []
    failed = 0
    for n in cuts(len(blob)):
        file = put('cut', blob[:n])
        p = run('runqslower', '-i', file, '--json', '1ms')
        said = [line for line in p.err.splitlines() if '; uid ' not in line]
        if p.rc == 1:
            failed += 1
            if len(said) != 1 or p.out or f'{file}' not in said[0] or 'Unknown error' in said[0]:
                problems.append(f'{n} of {len(blob)} bytes: status 1: {len(said)} lines, {len(p.out)} on stdout: {said[:2]}')
        elif p.rc == 0:
            if not said and p.out != whole and lost(p.out) <= lost(whole):
                problems.append(f'{n} of {len(blob)} bytes: other rows than of the whole file, and not a word about it')
        else:
            problems.append(f'{n} of {len(blob)} bytes: status {p.rc}: {p.err[:200]}')
    ok(not problems and failed >= at_most, f'cut at {len(cuts(len(blob)))} places: {name}', *problems[:6], f'{failed} refused')


for name, whole in WHOLE.items():
    cut(name, data(name), whole, 10)
    cut(name.rsplit('.', 1)[0], plain(name), whole, 1)
body = plain('storm.trace.txt.xz')
p = run('runqslower', '-i', put('cut', body[:body.rindex(b'sched_switch') + 20]), '--json', '1ms')
ok(p.rc == 0 and ([line for line in p.err.splitlines() if '; uid ' not in line] or lost(p.out)),
   'text cut within its last line: a warning, or the line counted as lost', p.rc, p.err)
swapped = bytearray(plain('hog.perf.data.zst'))
for at in range(1500, len(swapped) - 20000, 977):
    swapped[at] ^= 0xff
p = run('runqslower', '-i', put('noisy', bytes(swapped)), '1ms')
ok(p.rc in (0, 1) and p.err, 'a perf.data with a wrong byte every kilobyte: an error or a warning', p.rc, p.out[-100:])

# ---- recordings that lack what is asked for

rqs_hog = ('runqslower', '-i', hog)
bad('-p of a process that the recording does not hold', (*rqs_hog, '-p', '99999'), 1, 'no process 99999', 'hog', '-p')
bad('-t of a task that the recording does not hold', (*rqs_hog, '-t', '99999'), 1, 'no task 99999', 'hog', '-t')
bad('-p on a recording that knows no processes', ('runqslower', '-i', storm, '-p', '5'), 1, '-p', 'storm', '-t or -c')
bad('--cgroup on a recording that holds none', (*rqs_hog, '--cgroup', '/x'), 1, '--cgroup', 'hog', '--all-cgroups')
lines = plain('storm.trace.txt.xz').splitlines(keepends=True)
no_switch = put('no-switch', b''.join(line for line in lines if b'sched_switch' not in line))
rqs('a recording without sched_switch', no_switch, 'no sched_switch', 'perf record')
only = put('only-switch', b''.join(line for line in lines if b'sched_switch' in line or not line.startswith(b' ')))
p = run('runqslower', '-i', only, '--json', '1ms')
ok(p.rc == 0 and '"tid"' in p.out and re.search('no wake-ups.*perf record', p.err, re.S),
   'a recording without wake-ups: rows, and stderr says so with the command that records them', p.rc, p.err)

# ---- where it reads from and writes to

with open(hog, 'rb') as f:
    p = run(*rqs_hog[:2], '-', '5ms', stdin=f)
ok(p.rc == 0 and p.out.count('\n') > 20, 'standard input: a recording is read', p.err)
p = run('runqslower', '-i', '-', '5ms', stdin=subprocess.DEVNULL)
one_line('standard input: empty', p, 1, 'standard input', 'empty')
p = run('runqslower', '-i', '-', '5ms', stdin=None, preexec_fn=lambda: os.close(0))
one_line('standard input: closed', p, 1, 'standard input')
p = run('runqslower', '-i', '-', '5ms', stdin=os.open(tmp, os.O_RDONLY))
one_line('standard input: a folder', p, 1, 'standard input', 'directory')
for form in ((), ('--json',), ('--summary',), ('--profile',)):
    with open('/dev/full', 'w') as full:
        p = run(*rqs_hog, *form, '5ms', stdout=full)
    p.err = '\n'.join(line for line in p.err.splitlines() if '; uid ' not in line)
    one_line(f'standard output: a full disk {" ".join(form)}', p, 1, 'standard output')
p = run(*rqs_hog, '5ms', stdout=None, preexec_fn=lambda: os.close(1))
one_line('standard output: closed', p, 1, 'standard output')
with open('/dev/full', 'w') as full:
    p = run('check', os.path.join(OBJECTS, 'once.bpf.o'), stdout=full)
one_line('standard output of check: a full disk', p, 1, 'standard output')
with open('/dev/full', 'w') as full:
    p = run('--help', stdout=full)
one_line('standard output of --help: a full disk', p, 1, 'standard output')
for form in ((), ('--json',)):
    # more than a pipe holds, and a reader that leaves after one line
    with subprocess.Popen([INLAY, 'runqslower', '-i', storm, *form, '0'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        p.stdout.readline()
        p.stdout.close()
        err = p.stderr.read().decode()
        status = p.wait(timeout=60)
    ok(status == 0 and not [line for line in err.splitlines() if '; uid ' not in line],
       f'standard output: a reader that leaves is no error {" ".join(form)}', status, err)
p = run(*rqs_hog, '5ms', stderr=None, preexec_fn=lambda: os.close(2))
ok(p.rc == 0 and p.out.count('\n') > 20, 'standard error closed: rows all the same', p.rc)
p = run('runqslower', '-i', path('empty'), stderr=None, preexec_fn=lambda: os.close(2))
ok(p.rc == 1 and not p.out, 'standard error closed: an error keeps its exit status', p.rc)

# ---- objects

def section_table(blob):
    """name -> (index, header) of a 64-bit little-endian ELF file, and where each header is."""
    shoff, = struct.unpack_from('<Q', blob, 40)
    count, names = struct.unpack_from('<HH', blob, 60)
    heads = [struct.unpack_from('<IIQQQQIIQQ', blob, shoff + 64 * i) for i in range(count)]
    text = heads[names][4]
    return {blob[text + h[0]:blob.index(b'\0', text + h[0])].decode(): (i, h) for i, h in enumerate(heads)}


def damaged(blob, how):
    """The object with one thing wrong."""
    blob = bytearray(blob)
    table = section_table(blob)
    rel = next((h[4] for n, (_, h) in table.items() if h[1] == 9 and not n.startswith('.rel.')), 0)
    info, = struct.unpack_from('<Q', blob, rel + 8)
    ext = table['.BTF.ext'][1][4]
    core, = struct.unpack_from('<I', blob, ext + 24)
    head, = struct.unpack_from('<I', blob, ext + 4)
    first = ext + head + core + 4 + 8
    btf = table['.BTF'][1]
    if how == 'relocation at an offset out of range':
        struct.pack_into('<Q', blob, rel, 0x100000)
    elif how == 'relocation at an offset that is out of all range':
        struct.pack_into('<Q', blob, rel, 2**64 - 8)
    elif how == 'relocation inside an instruction':
        struct.pack_into('<Q', blob, rel, 3)
    elif how == 'relocation by a symbol out of range':
        struct.pack_into('<Q', blob, rel + 8, 99999 << 32 | info & 0xffffffff)
    elif how == 'relocation of an unknown type':
        struct.pack_into('<Q', blob, rel + 8, info & ~0xffffffff | 77)
    elif how == 'CO-RE relocation at an offset out of range':
        struct.pack_into('<I', blob, first, 0x7fffff8)
    elif how == 'CO-RE relocation of a type out of range':
        struct.pack_into('<I', blob, first + 4, 0x7fffff8)
    elif how == 'CO-RE relocation with a string out of range':
        struct.pack_into('<I', blob, first + 8, 0x7fffff8)
    elif how == 'CO-RE relocation of an unknown kind':
        struct.pack_into('<I', blob, first + 12, 4711)
    elif how == 'BTF of another magic':
        struct.pack_into('<H', blob, btf[4], 0x1234)
    elif how == 'BTF of zeros':
        blob[btf[4] + 24:btf[4] + btf[5]] = bytes(btf[5] - 24)
    elif how == 'BTF strings out of range':
        struct.pack_into('<I', blob, btf[4] + 20, 0x7ffffff0)
    elif how == 'sections past the end':
        struct.pack_into('<Q', blob, 40, len(blob) - 8)
    elif how == 'a foreign machine':
        struct.pack_into('<H', blob, 18, 62)
    elif how == 'big-endian':
        blob[5] = 2
    return bytes(blob)


def objects():
    with open(os.path.join(OBJECTS, 'missing_field.bpf.o'), 'rb') as f:
        with_core = f.read()
    with open(os.path.join(OBJECTS, 'events.bpf.o'), 'rb') as f:
        events = f.read()
    for how, words in (('relocation at an offset out of range', ('relocation 0', r'\.rel', '0x100000')),
                       ('relocation at an offset that is out of all range', ('relocation 0', r'\.rel')),
                       ('relocation inside an instruction', ('relocation 0', 'inside an instruction')),
                       ('relocation by a symbol out of range', ('relocation 0', '99999')),
                       ('relocation of an unknown type', ('relocation 0', '77')),
                       ('CO-RE relocation at an offset out of range', ('core_relo', '0x7fffff8')),
                       ('CO-RE relocation of a type out of range', ('core_relo', '134217720')),
                       ('CO-RE relocation with a string out of range', ('core_relo', '0x7fffff8')),
                       ('CO-RE relocation of an unknown kind', ('core_relo|CO-RE', '4711')),
                       ('BTF of another magic', (r'\.BTF', '0x1234')),
                       ('BTF of zeros', (r'\.BTF',)),
                       ('BTF strings out of range', (r'\.BTF',)),
                       ('sections past the end', ('section',)),
                       ('a foreign machine', ('machine 62',)),
                       ('big-endian', ('endian|byte order',))):
        base = with_core if 'CO-RE' in how else events
        file = put('damaged.o', damaged(base, how))
        bad(f'object, run: {how}', ('run', file, '-i', hog), 1, 'damaged.o', *words)
        p = run('check', file)
        if p.rc == 1 and not p.err and ' refused ' in p.out:
            # a verdict on one program, in the table, is what check is for
            ok(re.search(words[-1], p.out), f'object, check: {how}', *p.out.splitlines()[2:6])
        else:
            one_line(f'object, check: {how}', p, 1, 'damaged.o', *words, stdout_may=True)
    problems = []
    for n in cuts(len(events)):
        p = run('run', put('cut.o', events[:n]), '-i', hog)
        if p.rc != 1 or p.out or len(p.err.splitlines()) != 1 or 'cut.o' not in p.err:
            problems.append(f'{n} bytes: {p.rc}: {p.err[:200]}')
    ok(not problems, f'object, run: cut at {len(cuts(len(events)))} places', *problems[:5])
    for name, blob, words in (('empty.o', b'', ('empty|not an ELF|0 bytes',)), ('text.o', b'int main(void);\n' * 20, ('ELF',)),
                              ('random.o', rng.randbytes(9000), ('ELF',)),
                              ('elf-and-random.o', events[:64] + rng.randbytes(len(events) - 64), ('',))):
        bad(f'object: {name}', ('run', put(name, blob), '-i', hog), 1, re.escape(name), *words)
    bad('object: a recording', ('run', hog, '-i', hog), 1, 'hog', 'ELF')
    bad('object: not there', ('run', path('none.o')), 1, 'none.o', 'No such file')
    bad('object: a folder', ('run', tmp), 1, 'directory')

    def obj(name):
        return os.path.join(OBJECTS, name + '.bpf.o')
    bad('object without BTF', ('run', obj('nobtf'), '-i', hog), 1, 'nobtf', 'BTF', 'compile with -g')
    bad('object with a map type that inlay lacks', ('run', obj('odd_map'), '-i', hog), 1, 'odd_map', 'cpumap')
    bad('object that wants a field that the model lacks', ('run', obj('missing_field'), '-i', hog), 1, 'missing_field.bpf.o',
        'wants_shoe_size', 'task_struct.*shoe_size', context=True)
    bad('object of a section that no program type has', ('run', obj('section'), '-i', hog), 1, 'brews', 'coffee/brew')
    bad('object that the verifier refuses', ('run', obj('refused'), '-i', hog), 1, 'reads_through_a_number',
        "invalid mem access 'scalar'", r'refused\.bpf\.c:\d+', context=True)
    bad('run: a program that is not in the object', ('run', obj('events'), 'none', '-i', hog), 1, 'no program none', 'events')
    bad('run: several programs and none named', ('run', obj('events')), 2, 'several programs', 'name one')
    bad('run: a program that needs a recording', ('run', obj('events'), 'count_switch'), 1, 'count_switch', '-i FILE')
    bad('run: a recording that is none', ('run', obj('events'), '-i', path('random')), 1, 'random', 'not a recording')
    bad('run: input for a program that is not there', ('run', obj('once'), '--ctx-in', path('none')), 1, 'none', 'No such file')
    bad('dump: a program that is not there', ('dump', 'xlated', obj('events'), 'none'), 1, 'no program none')
    for name, words in (('random', ('random', 'BTF')), ('empty', ('empty', 'BTF')), ('none', ('none', 'No such file')),
                        ('hog', ('hog', 'BTF'))):
        bad(f'--btf: {name}', ('check', '--btf', path(name), obj('once')), 1, '--btf', *words, stdout_may=True)
    bad('--btf: an ELF file without types', ('check', '--btf', INLAY, obj('once')), 1, '--btf', 'BTF', stdout_may=True)


if os.path.exists(os.path.join(OBJECTS, 'events.bpf.o')):
    objects()
else:
    skip('objects', f'no objects in {OBJECTS}')

# ---- the running machine

if os.geteuid() == 0:
    for option, what in (('-p', 'process'), ('-t', 'task')):
        bad(f'live: {option} of nobody', ('runqslower', '-d', '100ms', option, '4194305'), 1, f'no {what} 4194305', option)
    bad('live: a cgroup that is not there', ('runqslower', '-d', '100ms', '--cgroup', '/no/such'), 1, '--cgroup', '/no/such')
    unread = put('unreadable', b'x')
    os.chmod(unread, 0)
    as_nobody = [os.path.join(TOOLS, 'nobpf'), '--nobody', '--']
    shutil.copy(INLAY, path('inlay'))
    if os.access(as_nobody[0], os.X_OK) and run('--version', before=as_nobody, exe=path('inlay')).rc == 0:
        p = run('runqslower', '-i', unread, before=as_nobody, exe=path('inlay'))
        one_line('recording: not readable', p, 1, 'unreadable', 'Permission denied')
        p = run('run', unread, before=as_nobody, exe=path('inlay'))
        one_line('object: not readable', p, 1, 'unreadable', 'Permission denied')
        p = run('runqslower', '5ms', before=as_nobody, exe=path('inlay'))
        one_line('live: not root', p, 1, 'root', '-i FILE')
    else:
        skip('files that cannot be read', 'nobody cannot run a copy of inlay here')
else:
    p = run('runqslower', '5ms')
    one_line('live: not root', p, 1, 'root', '-i FILE')
    unread = put('unreadable', b'x')
    os.chmod(unread, 0)
    rqs('recording: not readable', unread, 'Permission denied')

# ---- interrupted while it waits for input

for sig in (signal.SIGINT, signal.SIGTERM):
    with subprocess.Popen([INLAY, 'runqslower', '-i', '-', '5ms'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        try:
            p.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            pass
        p.send_signal(sig)
        try:
            status = p.wait(timeout=20)
        except subprocess.TimeoutExpired:
            p.kill()
            status = 'no end within 20 s'
        err = p.stderr.read().decode()
    ok(status in (0, 1, -sig) and len(err.splitlines()) <= 1, f'{sig.name} ends a run that waits for input', status, err)

done()

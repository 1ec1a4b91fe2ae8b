#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""BTF written as C is compiled again: the layout must be the same.

    test_dump.py TOOL SOURCE CLANG OBJCOPY
"""
import os
import subprocess
import sys
import tempfile

from fix_datasec import extract

tool, source, clang, objcopy = sys.argv[1:5]
count = 0
failed = 0


def ok(cond, name, detail=''):
    global count, failed
    count += 1
    print(f'{"ok" if cond else "not ok"} {count} - {name}')
    if not cond:
        failed += 1
        print('# ' + detail[:4000].replace('\n', '\n# '))


def run(*cmd):
    return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def layout(btf):
    return sorted(run(tool, 'layout', btf).stdout.decode().splitlines())


def dump(what, btf, header):
    done = run(tool, what, btf)
    with open(header, 'wb') as f:
        f.write(done.stdout)
    ok(done.returncode == 0 and len(done.stdout) > 0, f'{os.path.basename(btf)} is written as C',
       done.stderr.decode())
    return header


def compile_header(header, obj, *flags):
    return run(clang, '-target', 'bpf', '-O1', '-Wall', '-Werror', '-Wno-visibility', '-x', 'c', '-c', header, '-o', obj, *flags)


def round_trip(tmp, name, btf, members):
    """members: how many lines there must be at least, so that comparing nothing fails."""
    header = dump('c', btf, f'{tmp}/{name}.h')
    done = compile_header(header, f'{tmp}/{name}.o', '-g')
    ok(done.returncode == 0, f'{name}: the header is compiled', done.stderr.decode())
    if done.returncode:
        return
    extract(f'{tmp}/{name}.o', f'{tmp}/{name}.again', objcopy)
    before, after = layout(btf), layout(f'{tmp}/{name}.again')
    wrong = [line for line in before if line not in set(after)]
    ok(len(before) >= members and not wrong,
       f'{name}: all {len(before)} struct sizes and members, bit fields too, are where they were', '\n'.join(wrong))
    twice = dump('c', btf, f'{tmp}/{name}.2.h')
    with open(header, 'rb') as a, open(twice, 'rb') as b:
        ok(a.read() == b.read(), f'{name}: the same text each time')


def static_asserts(tmp, name, btf):
    header = dump('asserts', btf, f'{tmp}/{name}.asserts.h')
    with open(header, 'rb') as f:
        n = f.read().count(b'_Static_assert')
    done = compile_header(header, f'{tmp}/{name}.asserts.o')
    ok(done.returncode == 0 and n, f'{name}: {n} sizes and offsets are what the compiler makes of the header',
       done.stderr.decode())


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([clang, '-target', 'bpf', '-g', '-O2', '-DNO_EXTERN', '-c', source, '-o', f'{folder}/seed.o'], check=True)
    extract(f'{folder}/seed.o', f'{folder}/seed.btf', objcopy)
    round_trip(folder, 'seed', f'{folder}/seed.btf', 35)
    static_asserts(folder, 'odd', 'odd')
    if os.path.exists('/sys/kernel/btf/vmlinux'):
        static_asserts(folder, 'vmlinux', '/sys/kernel/btf/vmlinux')
    else:
        count += 1
        print(f'ok {count} # SKIP the running kernel shows no BTF')
print(f'1..{count}')
sys.exit(1 if failed else 0)

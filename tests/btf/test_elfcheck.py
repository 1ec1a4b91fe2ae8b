#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Objects as compilers write them are taken; objects with one fault are refused with that fault's reason.

    test_elfcheck.py TOOL SOURCE CLANG STRIP BPFTOOL
"""
import os
import re
import subprocess
import sys
import tempfile

from elf_faults import Elf, faults

tool, source, clang, strip, bpftool = sys.argv[1:6]
count = 0
failed = 0


def ok(cond, name, detail=''):
    global count, failed
    count += 1
    print(f'{"ok" if cond else "not ok"} {count} - {name}')
    if not cond:
        failed += 1
        print('# ' + detail.replace('\n', '\n# '))


def verdicts(paths):
    out = subprocess.run([tool, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if out.returncode:
        print('# ' + out.stderr.decode(errors='replace').replace('\n', '\n# '))
    lines = out.stdout.decode().splitlines()
    return lines + [f'tool died, {out.returncode}'] * (len(paths) - len(lines))


def compile_to(path, *flags):
    subprocess.run([clang, '-target', 'bpf', '-c', source, '-o', path, *flags], check=True)
    return path


def check_good(tmp):
    good = {}
    for cpu in ('v1', 'v2', 'v3', 'v4'):
        for opt in ('-O1', '-O2', '-Os'):
            good[f'-mcpu={cpu} {opt} -g'] = ['-g', f'-mcpu={cpu}', opt]
    good['DWARF 4'] = ['-g', '-O2', '-gdwarf-4']
    good['compressed debug information'] = ['-g', '-O2', '-gz']
    good['macros in debug information'] = ['-g', '-O2', '-fdebug-macro']
    good['a section for each function and variable'] = ['-g', '-O2', '-ffunction-sections', '-fdata-sections']
    good['BTF without DWARF lines'] = ['-g', '-O2', '-gno-column-info']
    paths = {name: compile_to(f'{tmp}/good{i}.o', *flags) for i, (name, flags) in enumerate(good.items())}
    stripped = compile_to(f'{tmp}/stripped.o', '-g', '-O2')
    subprocess.run([strip, '-g', stripped], check=True)
    paths['without debug information'] = stripped
    linked = f'{tmp}/linked.o'
    done = subprocess.run([bpftool, 'gen', 'object', linked, paths['-mcpu=v3 -O2 -g']], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        paths['linked by bpftool'] = linked
    for (name, _), verdict in zip(paths.items(), verdicts(list(paths.values()))):
        ok(verdict == 'ok', f'accepts: {name}', verdict)
    return paths['-mcpu=v3 -O2 -g']


def check_faulty(tmp, seed):
    with open(seed, 'rb') as f:
        data = f.read()
    cases = list(faults(data))
    paths = []
    for i, (_, content, _) in enumerate(cases):
        paths.append(f'{tmp}/fault{i}.o')
        with open(paths[-1], 'wb') as f:
            f.write(content)
    for (name, _, reason), verdict in zip(cases, verdicts(paths)):
        ok(verdict.startswith('-22 ') and re.search(reason, verdict) is not None, f'refuses: {name}', verdict)


def check_cuts(tmp, seed):
    """.BTF.ext ended at every byte of its first 200: never taken for more than it is."""
    with open(seed, 'rb') as f:
        data = f.read()
    paths = []
    for n in range(200):
        elf = Elf(data)
        elf.shdr('.BTF.ext', 'size', n)
        elf.shdr('.rel.BTF.ext', 'size', 0)
        # The section's end is the file's end, so that a step outside is one outside the file.
        at = elf.by_name('.BTF.ext')['offset']
        tail = bytes(elf.data[elf.shoff:elf.shoff + 64 * elf.shnum])
        elf.data += b'\0' * (-len(elf.data) % 8) + tail
        elf.header('shoff', len(elf.data) - len(tail))
        elf.shoff = len(elf.data) - len(tail)
        elf.data += data[at:at + n]
        elf.shdr('.BTF.ext', 'offset', len(elf.data) - n)
        paths.append(f'{tmp}/cut{n}.o')
        with open(paths[-1], 'wb') as f:
            f.write(elf.data)
    refused = [v for v in verdicts(paths) if v.startswith('-22 section .BTF.ext: ')]
    ok(len(refused) == len(paths), f'.BTF.ext cut at each of its first {len(paths)} bytes is refused',
       f'{len(refused)} were')


with tempfile.TemporaryDirectory() as folder:
    base = check_good(folder)
    check_faulty(folder, base)
    check_cuts(folder, base)
print(f'1..{count}')
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the recordings of tests/data anew: record.py --kernel VMLINUZ [--out DIR]

Boots a virtual machine in which nothing runs but the workloads and what records them, so that the
recordings hold no one's tasks but ours and need no cutting. Needs qemu-system-x86_64, gcc, perf,
trace-cmd, cpio, xz, zstd, gzip and a kernel image (Debian: `apt-get download
linux-image-6.1.0-NN-cloud-amd64`, `dpkg-deb -x`), but not root.

The emulator competes with whatever else the machine does; where a recording has a gap in a CPU's
chain of switches, or time stood still, it is refused: run again.
"""
import argparse
import base64
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ['bash', 'cat', 'base64', 'mkdir', 'mount', 'sleep', 'stty', 'tar', 'dd', 'gzip', 'perf']
# what is packed how: each compression that inlay reads is used by one recording at least
PACKED = {'hog.perf.data': 'zst', 'storm.trace.dat': 'zst', 'hog.ftrace.txt': 'gz'}
PACKERS = {'zst': ['zstd', '-q', '-19', '-c'], 'gz': ['gzip', '-9n', '-c'], 'xz': ['xz', '-9e', '-c']}
CPUS = 3


def run(*cmd, **kw):
    return subprocess.run(cmd, check=True, **kw)


def build_initrd(tmp):
    root = f'{tmp}/root'
    for name in ('bin', 'proc', 'sys', 'dev', 'tmp'):
        os.makedirs(f'{root}/{name}')
    for tool in TOOLS:
        path = os.path.realpath(shutil.which(tool))
        shutil.copy(path, f'{root}/bin/{tool}')
        libs = subprocess.run(['ldd', path], capture_output=True, text=True).stdout
        for lib in re.findall(r'(/\S+\.so\S*)', libs):
            os.makedirs(root + os.path.dirname(lib), exist_ok=True)
            shutil.copy(os.path.realpath(lib), root + lib)
    run('gcc', '-O1', '-static', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-o', f'{root}/bin/workload',
        f'{HERE}/workload.c', '-lpthread')
    shutil.copy(f'{HERE}/guest.sh', f'{root}/init')
    os.chmod(f'{root}/init', 0o755)
    run('sh', '-c', f'cd {root} && find . | cpio -o -H newc --quiet | gzip -1 > ../initrd')


def boot(tmp, kernel):
    run('qemu-system-x86_64', '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', str(CPUS),
        '-m', '1024', '-no-reboot', '-display', 'none', '-monitor', 'none', '-kernel', kernel,
        '-initrd', f'{tmp}/initrd', '-append', 'console=ttyS0 quiet panic=-1', '-serial', 'stdio',
        '-serial', f'file:{tmp}/sent', timeout=300, stdin=subprocess.DEVNULL)
    tar = subprocess.run(['gzip', '-dc'], input=base64.b64decode(open(f'{tmp}/sent', 'rb').read()),
                         stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as f:
        f.extractall(f'{tmp}/out', filter='data')


def assemble(out):
    """The trace.dat from ring buffer pages and formats, and the texts beside the recordings."""
    with tarfile.open(f'{out}/tracing.tar') as f:
        f.extractall(out, filter='data')
    quiet = {'stdout': subprocess.DEVNULL}
    run('trace-cmd', 'restore', '-c', '-t', f'{out}/tracing', '-k', '/dev/null', '-o', f'{out}/head',
        **quiet)
    run('trace-cmd', 'restore', '-i', f'{out}/head', '-o', f'{out}/storm.trace.dat',
        *(f'{out}/cpu{cpu}' for cpu in range(CPUS)), **quiet)
    # -N: by the file's own formats; the plug-in loses the plus of R+
    render = {'hog.perf': ['perf', 'script', '--ns', '-i', f'{out}/hog.perf.data'],
              'throttled.perf': ['perf', 'script', '--ns', '-i', f'{out}/throttled.perf.data'],
              'storm.trace': ['trace-cmd', 'report', '-t', '-N', f'{out}/storm.trace.dat']}
    for name, cmd in render.items():
        with open(f'{out}/{name}.txt', 'w') as f:
            run(*cmd, stdout=f)


def gaps(path):
    """How often a switch does not go on from the one before it on its CPU."""
    last, broken, switches = {}, 0, 0
    for line in open(path):
        m = re.search(r'\[(\d+)\].* prev_pid=(\d+) .* next_pid=(\d+)', line)
        if m:
            broken += last.get(m[1], m[2]) != m[2]
            switches += 1
            last[m[1]] = m[3]
    return broken, switches


def main():
    parser = argparse.ArgumentParser(description='Makes the recordings of tests/data anew.')
    parser.add_argument('--kernel', required=True, help='a bootable kernel image')
    parser.add_argument('--out', default=os.path.join(HERE, '../../tests/data'))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        build_initrd(tmp)
        boot(tmp, args.kernel)
        out = f'{tmp}/out'
        assemble(out)
        for name in ('hog.perf', 'throttled.perf', 'storm.trace', 'hog.ftrace'):
            broken, switches = gaps(f'{out}/{name}.txt')
            print(f'{name}: {switches} switches, {broken} not recorded')
            if broken or not switches:
                sys.exit('record.py: not a recording to ship; run again')
        for name in ('hog.perf.data', 'hog.perf.txt', 'throttled.perf.data', 'throttled.perf.txt',
                     'storm.trace.dat', 'storm.trace.txt', 'hog.ftrace.txt'):
            how = PACKED.get(name, 'xz')
            with open(f'{args.out}/{name}.{how}', 'wb') as f:
                run(*PACKERS[how], f'{out}/{name}', stdout=f)


if __name__ == '__main__':
    main()

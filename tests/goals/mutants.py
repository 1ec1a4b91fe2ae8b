#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hostile bytes against every reader, and against the whole command.

    mutants.py BUILD [--iterations N] [--whole N] [--only NAME]... [--seed S]

BUILD is a build folder, best one of AddressSanitizer and UBSan. The harnesses of fuzz/ get N mutants each: recordings a
format (perf.data, trace.dat, text; compressed ones among them), BTF, objects. For trace.dat, whose library runs in a child
process, that is our side against a child that answers nonsense; a tenth of N goes through the real child as well. Then N mutants of real recordings go through
`inlay runqslower` and of real objects through `inlay run` and `inlay check`, a process each: what our checks let pass
meets libbpf, the verifier and the programs. A crash, a sanitizer's report, an exit status that is not of the contract, a
line too many or too few on stderr for a refusal, or more than TIMEOUT seconds is a failure; the input is kept and named.
"""
import argparse
import concurrent.futures
import gzip
import lzma
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from lib import DATA, TOP, done, ok, skip

TIMEOUT = 120  # a library that makes no progress is ended after 30 s; the machine may be busy
ENV = dict(os.environ, ASAN_OPTIONS='detect_leaks=0:allocator_may_return_null=1:exitcode=99',
           UBSAN_OPTIONS='halt_on_error=1:exitcode=99:print_stacktrace=1')
REPORT = re.compile(r'AddressSanitizer|LeakSanitizer|runtime error:|MemorySanitizer|stack smashing|Assertion|Unknown error')


def harness(name, argv, iterations, seed):
    """Runs one of fuzz/'s, a piece of the mutants on each CPU, each with a seed of its own."""
    if not os.access(argv[0], os.X_OK):
        ok(False, f'{name}: {argv[0]} is not built')
        return
    pieces = max(1, min(os.cpu_count() or 1, iterations // 1000))
    share = -(-iterations // pieces)
    procs = [subprocess.Popen([argv[0], '--iterations', str(share), '--seed', str(seed * 1000 + i), '--timeout', str(TIMEOUT),
                               *argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(ENV, ASAN_OPTIONS='exitcode=99'))
             for i in range(pieces)]
    outs = [p.communicate() for p in procs]
    ran, problems = 0, []
    for p, (out, err) in zip(procs, outs):
        said = out.decode(errors='replace').strip().splitlines()
        ran += sum(int(n) for line in said for n in re.findall(r'^(\d+) inputs', line))
        if p.returncode:
            problems += [f'{" ".join(p.args)}: status {p.returncode}', err.decode(errors='replace')[-2500:]]
    ok(not problems and ran >= iterations, f'{name}: {ran} inputs, mutants and their seeds: no crash, no hang', *problems)


# ---- the whole command

INTERESTING = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512, 1023, 4095, 4096, 0x7fff, 0x8000,
               0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff]


def mutant(blob, rng):
    """One to five small damages."""
    out = bytearray(blob)
    for _ in range(rng.randint(1, 5)):
        if not out:
            break
        # headers and tables stand at the beginning or the end; elsewhere most bytes mean little
        at = rng.randrange(len(out)) if rng.random() < 0.6 else min(len(out) - 1, int(rng.expovariate(1 / 200)))
        what = rng.randrange(7)
        if what == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            out[at] = rng.randrange(256)
        elif what == 2:
            size = rng.choice((1, 2, 4, 8))
            at -= at % size
            out[at:at + size] = (rng.choice(INTERESTING) & (1 << 8 * size) - 1).to_bytes(size, 'little')
        elif what == 3:
            del out[at:at + rng.choice((1, 4, 8, 100, 4096))]
        elif what == 4:
            del out[at:]
        elif what == 5:
            frm = rng.randrange(len(out))
            out[at:at] = out[frm:frm + rng.choice((8, 64, 512))]
        else:
            size = rng.choice((4, 8))
            at -= at % size
            value = int.from_bytes(out[at:at + size], 'little') + rng.choice((-8, -1, 1, 8, 4096))
            out[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, 'little')
    return bytes(out)


def verdict(p, check):
    """What is wrong with how the process ended, or None."""
    err = p.stderr.decode(errors='replace')
    report = REPORT.search(err)
    if report:
        return f'{report[0]}: {err[max(0, report.start() - 200):report.start() + 1200]}'
    if p.returncode not in (0, 1):
        return f'exit status {p.returncode}: {err[-500:]}'
    lines = [line for line in err.splitlines() if line.startswith('inlay: ')]
    if p.returncode == 1 and not lines and not check:
        return f'exit status 1 and no line that says why: {err[:300]}'
    return None


def one(inlay, folder, number, blob, rng_seed, argv_of, check):
    path = os.path.join(folder, f'm{number}')
    with open(path, 'wb') as f:
        f.write(mutant(blob, random.Random(rng_seed)))
    try:
        p = subprocess.run([inlay, *argv_of(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=ENV, timeout=TIMEOUT)
        bad = verdict(p, check)
    except subprocess.TimeoutExpired:
        bad = f'no end within {TIMEOUT} s'
    if not bad:
        os.unlink(path)
        return None, p.returncode
    kept = os.path.join(tempfile.gettempdir(), f'inlay-mutant-{os.path.basename(folder)}-{number}')
    shutil.move(path, kept)
    return f'{" ".join(argv_of(kept))}: {bad}', None


def whole(name, inlay, blob, count, seed, argv_of, check=False):
    home = tempfile.TemporaryDirectory(prefix='inlay-mutants-')
    folder = home.name
    failures, statuses = [], {0: 0, 1: 0}
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(one, inlay, folder, i, blob, f'{seed} {name} {i}', argv_of, check) for i in range(count)]
        for job in concurrent.futures.as_completed(jobs):
            bad, status = job.result()
            if bad:
                failures.append(bad)
            else:
                statuses[status] += 1
    home.cleanup()
    ok(not failures, f'{name}: {count} mutants through the whole command ({statuses[0]} accepted, {statuses[1]} refused)',
       f'{len(failures)} failures', *[line for f in failures[:6] for line in f.splitlines()[:10]])


def main():
    parser = argparse.ArgumentParser(description='Mutated input for every reader.')
    parser.add_argument('build')
    parser.add_argument('--iterations', type=int, default=100000, help='for each harness of fuzz/')
    parser.add_argument('--whole', type=int, default=1000, help='processes for each kind of input')
    parser.add_argument('--only', action='append', metavar='NAME', help='kinds whose name holds this')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()

    def wanted(name):
        return not args.only or any(o in name for o in args.only)

    build = os.path.abspath(args.build)
    inlay = os.path.join(build, 'inlay')
    fuzz = os.path.join(build, 'fuzz')
    with tempfile.TemporaryDirectory(prefix='inlay-corpus-') as corpus:
        subprocess.run([sys.executable, os.path.join(TOP, 'tests', 'replay', 'make_corpus.py'), corpus], check=True)
        btf, objects = (os.path.join(build, 'tests', 'btf', name) for name in ('btf_seed.btf', 'btf_seed.o'))
        model = os.path.join(build, 'bpf', 'model', 'model.btf')
        shipped = os.path.join(build, 'bpf')
        own = [os.path.join(shipped, f'runqslower_{s}.bpf.o') for s in ('task', 'hash')]
        for name, argv in (
                ('perf.data', ['fuzz_recording', os.path.join(corpus, 'perf')]),
                ('text', ['fuzz_recording', os.path.join(corpus, 'text')]),
                # our side of the pipe, against a child that lies; then the library in its real child, a process an input
                ('trace.dat', ['fuzz_recording_child', os.path.join(corpus, 'dat')]),
                ('trace.dat in its child', ['fuzz_recording', os.path.join(corpus, 'dat')]),
                ('BTF', ['fuzz_btf', btf, model]),
                ('object', ['fuzz_object', objects, *own])):
            if args.iterations and wanted('fuzz ' + name):
                n = args.iterations // 10 if 'in its child' in name else args.iterations
                harness('fuzz ' + name, [os.path.join(fuzz, argv[0]), *argv[1:]], n, args.seed)

    def data(name):
        with open(os.path.join(DATA, name), 'rb') as f:
            blob = f.read()
        if name.endswith('.zst'):
            return subprocess.run(['zstd', '-qdc'], input=blob, stdout=subprocess.PIPE, check=True).stdout
        return lzma.decompress(blob) if name.endswith('.xz') else gzip.decompress(blob)

    for name in ('hog.perf.data.zst', 'throttled.perf.data.xz', 'storm.trace.dat.zst', 'hog.ftrace.txt.gz', 'storm.trace.txt.xz',
                 'hog.perf.txt.xz'):
        if args.whole and wanted('runqslower ' + name):
            whole('runqslower ' + name, inlay, data(name), args.whole, args.seed,
                  lambda path: ['runqslower', '-i', path, '--summary', '--hist', '1ms'])
    hog = os.path.join(DATA, 'hog.perf.data.zst')
    cli = os.path.join(build, 'tests', 'cli')
    for path in (os.path.join(cli, 'events.bpf.o'), os.path.join(cli, 'missing_field.bpf.o'), os.path.join(cli, 'once.bpf.o'),
                 os.path.join(shipped, 'runqslower_hash.bpf.o')):
        name = os.path.basename(path)
        if not args.whole or not wanted('object ' + name):
            continue
        if not os.path.exists(path):
            skip(f'object {name}', f'{path} is not built')
            continue
        with open(path, 'rb') as f:
            blob = f.read()
        whole(f'check {name}', inlay, blob, args.whole, args.seed, lambda p: ['check', p], True)
        whole(f'dump {name}', inlay, blob, args.whole // 4, args.seed, lambda p: ['dump', 'xlated', p])
        if name == 'events.bpf.o':
            whole(f'run {name}', inlay, blob, args.whole, args.seed, lambda p: ['run', p, '-i', hog, '--maps'])
    done()


if __name__ == '__main__':
    main()

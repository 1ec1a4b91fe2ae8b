#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures every goal of release 0.1 on what is checked out, one line a row; exit status 1 on a miss.

    ./bootstrap goals 1 [ROW...]        rows by name, all without; --list names them

A row prints PASS, MISS or SKIP (what the machine does not allow, with the reason; a SKIP is not a miss but is counted in the
last line), the figure, and the goal. Timings are whole-process wall times; comparisons alternate and use medians.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
INLAY = os.path.join(BUILD, "inlay")
DATA = os.path.join(TOP, "tests", "data")
SHARED = os.environ.get("INLAY_SHARED", os.path.join(os.path.dirname(TOP), "shared"))
WAITS = os.path.join(TOP, "tests", "independent", "waits.py")
ROWS = []


class Skip(Exception):
    pass


class Miss(Exception):
    pass


def row(goal):
    def add(fn):
        ROWS.append((fn.__name__, goal, fn))
        return fn
    return add


def run(cmd, **kw):
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(cmd, text=True, **kw)


def need(path):
    if not os.path.exists(path):
        raise Skip(f"{path} is not there")
    return path


def need_root():
    if os.getuid():
        raise Skip("needs root")


def rows_of(path, min_arg, *more):
    r = run([INLAY, "runqslower", "-i", path, "--json", *more, min_arg])
    if r.returncode:
        raise Miss(f"inlay runqslower -i {path}: exit {r.returncode}: {r.stderr.strip()[-200:]}")
    return r.stdout


def compare(recording, text, min_arg, min_ns, at_least=20):
    """Rows against the independent computation, for the three storages. Returns the number of rows."""
    outs = {s: rows_of(recording, min_arg, "--storage", s) for s in ("task", "hash", "hash-noprealloc")}
    if len(set(outs.values())) != 1:
        raise Miss(f"{recording}: the three storages differ")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write(outs["task"])
        f.flush()
        r = run([sys.executable, WAITS, "--min-ns", str(min_ns), "--compare", f.name, "--at-least", str(at_least), text])
    if r.returncode:
        raise Miss(f"{recording}: {(r.stdout + r.stderr).strip()[-300:]}")
    return sum('"wait_ns"' in line and '"summary"' not in line for line in outs["task"].splitlines())


def shipped(name):
    for f in sorted(os.listdir(DATA)):
        if f.startswith(name):
            return os.path.join(DATA, f)
    raise Miss(f"no tests/data/{name}*")


@row("rows equal an independent computation: shipped recordings at 1 ms, >= 20 rows each")
def rows_shipped():
    said = []
    for rec, text in (("hog.perf.data", "hog.perf.txt"), ("hog.ftrace.txt", "hog.ftrace.txt"),
                      ("throttled.perf.data", "throttled.perf.txt"), ("storm.trace.dat", "storm.trace.txt")):
        said.append(f"{rec} {compare(shipped(rec), shipped(text), '1ms', 1000000)}")
    return ", ".join(said)


@row("rows equal an independent computation: recordings of others, >= 20 rows each")
def rows_others():
    traces = need(os.path.join(SHARED, "traces"))
    said = []
    for f in ("lisa-sched_load.trace.dat", "lisa-example_rtapp.trace.dat"):
        path = need(os.path.join(traces, f))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as t:
            r = run(["trace-cmd", "report", "-t", "-R", path], stdout=t)
            if r.returncode:
                raise Skip("trace-cmd report does not work here")
            said.append(f"{f} {compare(path, t.name, '100us', 100000)}")
    for f in ("lisa-trace.txt.gz", "traceshark-4cpu-ramload.asc.xz"):
        path = need(os.path.join(traces, f))
        said.append(f"{f} {compare(path, path, '50us', 50000)}")
    return ", ".join(said)


def meson_tests(suite):
    """(passed, failed, skipped) of the subtests in a suite, from the log of a fresh run."""
    r = run([sys.executable, os.path.join(TOP, "scripts", "count-tests.py"), "--run", BUILD, "--suite", suite])
    m = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", r.stdout)
    if not m:
        raise Miss(f"suite {suite}: {r.stdout.strip()[-200:]}{r.stderr.strip()[-200:]}")
    return tuple(map(int, m.groups()))


@row("live rows equal a perf recording of the same time; overhead <= libbpf-tools' runqslower")
def live():
    need_root()
    r = run([sys.executable, os.path.join(TOP, "tests", "cli", "live_overhead.py")])
    if r.returncode == 77:
        raise Skip(r.stdout.strip()[-200:])
    if r.returncode:
        raise Miss(r.stdout.strip()[-300:])
    return r.stdout.strip().splitlines()[-1]


@row("as nobody, without /sys/kernel/btf, bpf(2) refused by a filter that kills; two runs byte-identical")
def nobody():
    need_root()
    r = run([sys.executable, os.path.join(TOP, "tests", "cli", "as_nobody.py")])
    if r.returncode == 77:
        raise Skip(r.stdout.strip()[-200:])
    if r.returncode or "not ok" in r.stdout:
        raise Miss((r.stdout + r.stderr).strip()[-300:])
    return f"{r.stdout.count('ok ')} checks"


@row("replay >= 300,000 events/s from file to rows (interpreter); <= 256 MiB for 10^7 events, 8 CPUs, 1,000 tasks")
def speed():
    events = 10_000_000
    with tempfile.TemporaryDirectory() as d:
        base, big = os.path.join(d, "base"), os.path.join(d, "big.perf.data")
        with open(base, "w") as f:
            subprocess.run(["zstd", "-qdc", shipped("hog.perf.data")], stdout=f, check=True)
        run([os.path.join(BUILD, "tests", "tools", "gen_perf"), base, big, str(events), "8", "1000"])
        best, rss = [], 0
        for _ in range(3):
            start = time.monotonic()
            r = run(["/usr/bin/env", "python3", "-c",
                     "import os,resource,subprocess,sys\n"
                     "p=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)\n"
                     "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                     INLAY, "runqslower", "-i", big, "10ms"])
            best.append(time.monotonic() - start)
            status, kib = map(int, r.stdout.split())
            if status:
                raise Miss(f"exit {status}")
            rss = max(rss, kib)
    rate = events / statistics.median(best)
    said = f"{rate:,.0f} events/s, {rss / 1024:.0f} MiB"
    if rate < 300_000 or rss > 256 * 1024:
        raise Miss(said)
    return said


def sanitized():
    """The ASan + UBSan build, made once."""
    b = os.path.join(TOP, "build-san")
    if not os.path.exists(os.path.join(b, "build.ninja")):
        r = run(["meson", "setup", b, TOP, "-Db_sanitize=address,undefined", "-Db_lundef=false"])
        if r.returncode:
            raise Miss(r.stdout[-300:])
    r = run(["ninja", "-C", b])
    if r.returncode:
        raise Miss(r.stdout[-500:])
    return b


@row(">= 100,000 mutated inputs of each reader, of BTF and of objects under ASan + UBSan: no crash, no hang")
def mutants():
    b = sanitized()
    r = run([sys.executable, os.path.join(TOP, "fuzz", "run.py"), b, "--iterations", "100000"])
    if r.returncode:
        raise Miss((r.stdout + r.stderr).strip()[-400:])
    return r.stdout.strip().splitlines()[-1]


@row("the whole suite under ASan + UBSan")
def suite_sanitized():
    b = sanitized()
    r = run([sys.executable, os.path.join(TOP, "scripts", "count-tests.py"), "--run", b])
    last = r.stdout.strip().splitlines()[-1] if r.stdout.strip() else r.stderr[-200:]
    if r.returncode:
        raise Miss(last)
    return last


@row("bad input: one clear line each, exit status as documented")
def bad_input():
    r = run([sys.executable, os.path.join(TOP, "tests", "cli", "bad_input.py")])
    if r.returncode or "not ok" in r.stdout:
        raise Miss("\n".join(x for x in r.stdout.splitlines() if x.startswith("not ok"))[-400:])
    return f"{r.stdout.count('ok ')} cases"


@row("faults put in one at a time (>= 20) are caught by the suite, all but one at most")
def faults():
    r = run([sys.executable, os.path.join(TOP, "scripts", "faults.py")])
    last = r.stdout.strip().splitlines()[-1] if r.stdout.strip() else r.stderr[-300:]
    if r.returncode:
        raise Miss(last)
    return last


@row("a bare Debian 12: ./bootstrap demo, then ./bootstrap check")
def bare_machine():
    need_root()
    if run(["which", "debootstrap"]).returncode:
        raise Skip("debootstrap is not installed")
    r = run([os.path.join(TOP, "scripts", "bare-machine.sh"), "both"])
    last = r.stdout.strip().splitlines()[-1] if r.stdout.strip() else r.stderr[-300:]
    if r.returncode:
        raise Miss(last + r.stderr[-200:])
    return last


def main():
    args = sys.argv[1:]
    if args == ["--list"]:
        print("\n".join(f"{name:18} {goal}" for name, goal, _ in ROWS))
        return 0
    known = {name for name, _, _ in ROWS}
    for a in args:
        if a not in known:
            print(f"goals: no row '{a}'; --list names them", file=sys.stderr)
            return 2
    missed = skipped = done = 0
    for name, goal, fn in ROWS:
        if args and name not in args:
            continue
        try:
            verdict, said = "PASS", fn()
            done += 1
        except Skip as e:
            verdict, said = "SKIP", str(e)
            skipped += 1
        except Miss as e:
            verdict, said = "MISS", str(e)
            missed += 1
        print(f"{verdict} {name}: {said}\n     goal: {goal}", flush=True)
    print(f"goals of release 1: {done} reached, {missed} missed, {skipped} not measured here")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

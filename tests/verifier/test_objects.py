# SPDX-License-Identifier: BSD-2-Clause
"""Programs as clang makes them, each judged by inlay and, where bpf(2) answers, by the running kernel 6.18.

usage: test_objects.py INLAY OBJECT
The program's name says the verdict: ok_ accepted, bad_ refused, stricter_ refused where the kernel deliberately differs. Instructions walked are compared for information.
"""
import csv
import io
import os
import platform
import subprocess
import sys


def judge(inlay, obj, *options):
    run = subprocess.run([inlay, *options, "check", "--csv=full", obj], capture_output=True, text=True, timeout=300)
    return {row["prog"]: row for row in csv.DictReader(io.StringIO(run.stdout))}, run.stderr


def kernel_answers(inlay, obj):
    if not platform.release().startswith("6.18."):
        return None, "the kernel is %s, not 6.18" % platform.release()
    if os.geteuid():
        return None, "not root"
    rows, err = judge(inlay, obj, "--engine", "kernel")
    if not any(row["verdict"] == "success" for row in rows.values()):
        return None, "the kernel takes no program: %s" % err.strip()
    return rows, ""


def main():
    inlay, obj = sys.argv[1:3]
    checks = []

    def ok(cond, name):
        checks.append(cond)
        print("%sok %d - %s" % ("" if cond else "not ", len(checks), name))

    def skip(name, why):
        checks.append(True)
        print("ok %d - %s # SKIP %s" % (len(checks), name, why))

    rows, err = judge(inlay, obj)
    ok(len(rows) > 40, "the object's programs are judged (%d) %s" % (len(rows), err.strip()))
    for name, row in rows.items():
        want = "success" if name.startswith("ok_") else "failure"
        ok(row["verdict"] == want, "%s: %s %s" % (name, row["verdict"], row["reason"]))
    kernel, why = kernel_answers(inlay, obj)
    if kernel is None:
        skip("verdicts of the kernel", why)
    else:
        same = sum(rows[n]["insns"] == k["insns"] for n, k in kernel.items() if n in rows)
        words = sum(rows[n]["reason"] == k["reason"] for n, k in kernel.items() if n in rows)
        for name, row in kernel.items():
            mine = rows.get(name, {}).get("verdict")
            ok((mine == row["verdict"]) != name.startswith("stricter_"), "%s: kernel %s" % (name, row["verdict"]))
        print("# of %d: as many instructions walked in %d, the same words in %d" % (len(kernel), same, words))
    print("1..%d" % len(checks))
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())

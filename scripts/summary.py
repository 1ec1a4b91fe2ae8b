#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what meson's test run found, subtest by subtest: summary.py testlog.json

Prints what failed and why something was skipped, then "N passed, N failed, N skipped". A test that
ended badly (crash, timeout, a plan not kept) with no line that says so counts as one failure more.
Exits 1 if anything failed or nothing passed.
"""
import collections
import json
import re
import sys

RESULT = re.compile(r'^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*(SKIP)\b\s*(.*))?$', re.I)


def subtests(out):
    """(passed, failed, skipped) counts, failed lines with the notes under them, reasons to skip"""
    count, failed, reasons, showing = collections.Counter(), [], [], False
    for line in out.splitlines():
        m = RESULT.match(line)
        if not m:
            bad_notes = showing and line.startswith('#')
            if bad_notes:
                failed.append('      ' + line)
            elif line.startswith('1..0'):
                count['skipped'] += 1
                reasons.append(line.partition('#')[2].strip() or 'the whole test')
            continue
        showing = False
        if m[3]:
            count['skipped'] += 1
            reasons.append(f'{m[2]} ({m[4]})' if m[2] else m[4])
        elif m[1]:
            count['failed'] += 1
            failed.append('    ' + line)
            showing = True
        else:
            count['passed'] += 1
    return count, failed, reasons


def one(test):
    """The counts of a test, and the lines to show for it."""
    out, result = test.get('stdout') or '', test['result']
    count, failed, reasons = subtests(out)
    if not count:                                   # not TAP, or it said nothing
        count[{'OK': 'passed', 'SKIP': 'skipped'}.get(result, 'failed')] += 1
        if result == 'SKIP':
            reasons.append(out.strip().splitlines()[-1] if out.strip() else 'no reason given')
    elif result not in ('OK', 'SKIP', 'EXPECTEDFAIL') and not count['failed']:
        count['failed'] += 1
    lines = []
    if count['failed']:
        lines.append(f'FAILED {test["name"]} ({result}, exit status {test.get("returncode")})')
        lines += failed
        if not failed:
            tail = (out + '\n' + (test.get('stderr') or '')).strip().splitlines()[-15:]
            lines += ['    ' + line for line in tail]
    lines += [f'skipped {test["name"]}: {reason}' for reason in reasons]
    return count, lines


def main():
    total, shown, slowest = collections.Counter(), [], []
    try:
        with open(sys.argv[1]) as f:
            tests = [json.loads(line) for line in f if line.strip()]
    except OSError as e:
        print(f'summary: {e}')
        tests = []
    for test in tests:
        count, lines = one(test)
        total.update(count)
        shown += lines
        slowest.append((test.get('duration') or 0, test['name']))
    for line in sorted((l for l in shown if l.startswith('skipped')), key=str):
        print(line)
    for line in (l for l in shown if not l.startswith('skipped')):
        print(line)
    slow = ', '.join(f'{name} {duration:.0f} s' for duration, name in sorted(slowest, reverse=True)[:3])
    print(f'{len(tests)} test programs; slowest: {slow}')
    print(f'{total["passed"]} passed, {total["failed"]} failed, {total["skipped"]} skipped')
    sys.exit(1 if total['failed'] or not total['passed'] else 0)


if __name__ == '__main__':
    main()

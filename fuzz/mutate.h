/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A deterministic mutation driver: the same seed and files give the same inputs in the same order,
 * with any compiler. A harness is one function and `return mutate_main(argc, argv, one);`.
 *
 *   ./fuzz_x [--iterations N] [--seed S] [--max-size N] [--only K] [--keep FILE] [-q] FILE|FOLDER…
 *
 * First each file is tried as it is, then N mutants of them. --only K runs just mutant K (a failing
 * one's number is on stderr, see below); --keep FILE writes each input there before it is tried, so
 * that after a crash the file holds the input. Without files one empty seed is used. Before each
 * input its number is put where a crash handler finds it: a fatal signal or a sanitizer's abort
 * prints "mutate: input K, seed S". An input that takes longer than 10 s (--timeout S) is reported
 * the same way and ends the run with status 1.
 */
#ifndef INLAY_FUZZ_MUTATE_H
#define INLAY_FUZZ_MUTATE_H

#include "base/types.h"

/* one: tries an input; data is in a heap block of exactly size bytes, so that a sanitizer sees each
 * over-read. */
int mutate_main(int argc, char **argv, void (*one)(const u8 *data, size_t size));

/* For harnesses that need luck of their own (lengths, flags): depends only on seed and input
 * number. */
u64 mutate_random(void);

#endif

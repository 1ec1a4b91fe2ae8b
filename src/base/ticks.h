/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's cycle counter, arch_ticks(), as a stopwatch: for times so short that asking the kernel's clock would be most
 * of them. It is not ordered against the instructions around it, like the kernel's own run statistics.
 */
#ifndef INLAY_BASE_TICKS_H
#define INLAY_BASE_TICKS_H

#include "base/arch.h"

extern u64 arch_ticks_scale; /* ns of a tick << 32; 0: not known yet, or no counter that runs evenly. Atomic */

/* Measures it, once a process, against CLOCK_MONOTONIC: takes a millisecond. Thread-safe. */
void arch_ticks_init(void);

/* ns that so many ticks take, scale being arch_ticks_scale and not 0. */
static inline u64 arch_ticks_ns(u64 ticks, u64 scale)
{
	return (u64)((unsigned __int128)ticks * scale >> 32);
}

#endif

// SPDX-License-Identifier: BSD-2-Clause
/*
 * --profile: how often each handler ran and how long it took, from the engine's own run statistics.
 */
#include "rqs.h"

#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

void rqs_profile_read(struct rqs *rqs, struct rqs_prof_cell cells[RQS_NR_HANDLERS][RQS_NR_STORAGES])
{
	memset(cells, 0, sizeof(cells[0]) * RQS_NR_HANDLERS);
	for (u32 i = 0; i < rqs->nr_bpf; i++) {
		const struct rqs_bpf *bpf = &rqs->bpf[i];

		for (u32 h = 0; h < RQS_NR_HANDLERS; h++) {
			struct rqs_prof_cell *cell = &cells[h][bpf->storage];
			struct bpf_prog_info info = {};
			u32 size = sizeof(info);

			if (!bpf->prog[h] ||
			    bpf_obj_get_info_by_fd(bpf_program__fd(bpf->prog[h]), &info, &size))
				continue;
			cell->known = rqs->stats_fd > 0;
			cell->runs = info.run_cnt;
			if (info.run_cnt)
				cell->mean_ns = (double)info.run_time_ns / info.run_cnt;
			cli_engine_run_quantiles(rqs->engine, bpf_program__fd(bpf->prog[h]),
						 &cell->p50_ns, &cell->p99_ns);
		}
	}
}

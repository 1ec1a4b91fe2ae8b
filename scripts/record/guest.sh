#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The init of the virtual machine that record.py boots: records the workloads, sends the files out
# over the second serial port as base64 of a tar, and powers off. Nothing else runs in there.
export PATH=/bin LD_LIBRARY_PATH=/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
mount -t tmpfs none /tmp
mkdir -p /sys/fs/cgroup /tmp/out
mount -t cgroup2 none /sys/fs/cgroup
cd /tmp || exit

# In-kernel preemption as desktop kernels have it, so that R+ occurs.
echo full > /sys/kernel/debug/sched/preempt
# The time slices of a single CPU rather than of four, so that not every wait is a long one.
echo 6000000 > /sys/kernel/debug/sched/latency_ns
echo 750000 > /sys/kernel/debug/sched/min_granularity_ns
echo 1000000 > /sys/kernel/debug/sched/wakeup_granularity_ns

events="sched_switch sched_wakeup sched_wakeup_new sched_waking sched_migrate_task
	sched_process_fork sched_process_exit"
tracefs=/sys/kernel/tracing

hog() {
	list=
	for event in $events; do
		list=$list,sched:$event
	done
	perf record -q -m 1024 -a -e "${list#,}" -o out/hog.perf.data -- workload hog 0.7
}

throttled() {
	echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/quota
	echo "30000 100000" > /sys/fs/cgroup/quota/cpu.max
	perf sched record -o out/throttled.perf.data -- bash -c \
		'echo $$ > /sys/fs/cgroup/quota/cgroup.procs; exec workload throttled 3'
}

# A workload recorded by a tracefs instance of its own: instance NAME MODE SECONDS
instance() {
	buffer=$tracefs/instances/$1
	mkdir "$buffer"
	echo 8192 > "$buffer/buffer_size_kb"
	echo 1 > "$buffer/options/record-tgid"
	for event in $events; do
		echo 1 > "$buffer/events/sched/$event/enable"
	done
	workload "$2" "$3"
	echo 0 > "$buffer/tracing_on"
}

storm() {
	instance storm storm 1
	for dir in "$buffer"/per_cpu/cpu*; do
		dd if="$dir/trace_pipe_raw" of="out/${dir##*/}" bs=4096 iflag=nonblock 2> /dev/null
	done
	# tracefs says of every file that it is empty, so tar cannot take them from there
	for file in "$tracefs"/{events/header_page,events/header_event,events/{ftrace,sched}/*/format} \
		"$tracefs"/{printk_formats,saved_cmdlines,trace_clock}; do
		copy=tracing/${file#"$tracefs"/}
		mkdir -p "${copy%/*}"
		cat "$file" > "$copy"
	done
	tar -c -f out/tracing.tar tracing
}

ftrace() {
	instance text hog 0.8
	cat "$buffer/trace" > out/hog.ftrace.txt
}

for job in hog throttled storm ftrace; do
	$job
	echo "guest: $job done"
done
stty -F /dev/ttyS1 raw -echo
tar -c -C out . | gzip -9 | base64 > /dev/ttyS1
echo o > /proc/sysrq-trigger
sleep 60

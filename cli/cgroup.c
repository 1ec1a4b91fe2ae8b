// SPDX-License-Identifier: BSD-2-Clause
#include "cgroup.h"

#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

const char *cli_cgroup_root(void)
{
	static char root[4096];
	struct mntent *m;
	FILE *f;

	if (root[0])
		return root;
	f = setmntent("/proc/self/mounts", "re");
	while (f && !root[0] && (m = getmntent(f)))
		if (!strcmp(m->mnt_type, "cgroup2"))
			snprintf(root, sizeof(root), "%s", m->mnt_dir);
	if (f)
		endmntent(f);
	if (!root[0])
		strcpy(root, "/sys/fs/cgroup");
	return root;
}

const char *cli_cgroup_name(const char *path)
{
	const char *root = cli_cgroup_root();
	size_t len = strlen(root);

	if (!strncmp(path, root, len) && (!path[len] || path[len] == '/'))
		path += len;
	else if (!strncmp(path, "/sys/fs/cgroup/", 15))
		path += 15;
	return path + strspn(path, "/");
}

u64 cli_cgroup_id(const char *path)
{
	char full[8192];
	struct statfs fs;
	struct stat st;

	snprintf(full, sizeof(full), "%s/%s", cli_cgroup_root(), cli_cgroup_name(path));
	if (stat(full, &st) || !S_ISDIR(st.st_mode) || statfs(full, &fs) ||
	    fs.f_type != CGROUP2_SUPER_MAGIC)
		return 0;
	return st.st_ino;
}

# SPDX-License-Identifier: BSD-2-Clause
# For habit; the build is meson's, the commands are ./bootstrap's.
all:
	@NO_INSTALL=1 ./bootstrap build

check demo:
	@./bootstrap $@

install: all
	meson install -C build --no-rebuild

clean:
	rm -rf build

.PHONY: all check demo install clean

#!/bin/sh
# Makes the group and the user, and gives the group the umad devices that are there.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers fabsh.conf
else
	getent group fabsh >/dev/null || groupadd --system fabsh
	getent passwd fabsh >/dev/null || useradd --system --gid fabsh --home-dir /var/lib/fabsh --shell /usr/sbin/nologin fabsh
fi
if [ -d /run/udev ]; then
	udevadm control --reload
	udevadm trigger --subsystem-match=infiniband_mad
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

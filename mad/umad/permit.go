package umad

import (
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// permit returns how the user can get permission to open a device; group is the
// group that may open it and that the user is not in, or "".
func permit(group string) string {
	if group != "" {
		return "run as root; or join its group and log in again: sudo usermod -aG " + group + ` "$USER" (its members can change the fabric)`
	}
	return `run as root; or allow a group to use it by a rule in /etc/udev/rules.d, SUBSYSTEM=="infiniband_mad", KERNEL=="umad*", GROUP="rdma", MODE="0660" (its members can then change the fabric), then: udevadm control --reload && udevadm trigger -s infiniband_mad; fabsh's package brings such a rule, for the group fabsh`
}

// groupOf returns the name of the group that may read and write the file, if this
// process is not in it; otherwise "".
func groupOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	own, err := os.Getgroups()
	if err != nil {
		return ""
	}
	return groupIn(info, append(own, os.Getegid()))
}

// groupIn is groupOf for a process of the groups own.
func groupIn(info fs.FileInfo, own []int) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&0o060 != 0o060 || st.Gid == 0 || slices.Contains(own, int(st.Gid)) {
		return ""
	}
	g, err := user.LookupGroupId(strconv.Itoa(int(st.Gid)))
	if err != nil {
		return ""
	}
	return g.Name
}

package umad

import (
	"errors"
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

// denied returns the cause and the remedy where the system refuses to open the device at
// path with err. What its owner, group and mode allow, something else forbids: the devices
// of a container (EPERM), or a security policy (EACCES).
func denied(path string, err error) string {
	switch {
	case errors.Is(err, syscall.EPERM):
		return "not permitted; pass the device to the container with --device " + path
	case modeAllows(path):
		return "permission denied although its mode allows it; " + forbidden
	}
	return "permission denied; " + permit(groupOf(path))
}

// modeAllows reports whether owner, group and mode of the file let this process read and
// write it.
func modeAllows(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	groups, err := os.Getgroups()
	st, ok := info.Sys().(*syscall.Stat_t)
	if err != nil || !ok {
		return false
	}
	bits := info.Mode().Perm()
	switch {
	case int(st.Uid) == os.Geteuid():
		bits >>= 6
	case slices.Contains(append(groups, os.Getegid()), int(st.Gid)):
		bits >>= 3
	}
	return bits&6 == 6
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

package history

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// remoteKinds are file systems of other machines, by the magic of statfs(2).
var remoteKinds = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2",
	unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.V9FS_MAGIC: "9P",
	0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS",
}

// remoteKind names the network file system that dir is on; "": a local one, or unknown.
func remoteKind(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	return remoteKinds[int64(st.Type)]
}

// freeSpace returns why the disk of path is nearly full: less than 5 % or 1 GiB is free; "": it is not, or
// is unknown.
func freeSpace(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &st) != nil || st.Blocks == 0 {
		return ""
	}
	free := uint64(st.Bsize) * st.Bavail
	if free >= 1<<30 && st.Bavail >= st.Blocks/20 {
		return ""
	}
	return fmt.Sprintf("the disk is nearly full: %d MB free (%d %%)", free>>20, 100*st.Bavail/st.Blocks)
}

package shell

import "golang.org/x/sys/unix"

// machineMemory is how many bytes the machine has.
func machineMemory() byteSize {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxMemory
	}
	return byteSize(info.Totalram) * byteSize(info.Unit)
}

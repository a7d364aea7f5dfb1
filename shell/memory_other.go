//go:build !linux

package shell

// machineMemory is not known.
func machineMemory() byteSize { return maxMemory }

//go:build linux

// Package umadtest runs tests in a virtual machine, on the kernel's own
// ib_umad: over Soft-RoCE, or over virtual InfiniBand adapters whose fabric is
// a program (testdata/vib).
//
//	umadtest.go  Main, for the TestMain of a package whose tests run there
//	boot.go      on the host: what the machine starts with, and QEMU
//	cpio.go      the archive that holds it
//	module.go    kernel modules with what they depend on
//	program.go   programs with their libraries
//	guest.go     in the machine: the first process
//	link.go      Soft-RoCE devices, made and removed
//	hca.go       virtual adapters
//	kernel.sh    unpacks kernel and QEMU, compiles the module
//	rdmacore.sh  compiles tools of a newer rdma-core
//
// Such a test binary boots a machine whose first process is itself; what
// its tests write there is what go test sees.
package umadtest

import (
	"fmt"
	"os"
	"testing"
)

// VM is a machine.
type VM struct {
	// Modules of the kernel are loaded in this order, each after those it
	// depends on; "?crc32_generic" may be missing.
	Modules []string
	// Programs of the peers, or of the host ("opensm"); ibsimtest finds them.
	Programs []string
	// Packages are programs of this module ("fabsh/shell/fabsh"), built for
	// the machine.
	Packages []string
}

// Main runs the tests of m in vm.
func Main(m *testing.M, vm VM) {
	switch {
	case os.Getpid() == 1:
		halt(initGuest())
	case os.Getenv(inGuest) != "":
		os.Exit(m.Run())
	}
	status, err := vm.boot(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "umadtest:", err)
		status = 1
	}
	os.Exit(status)
}

//go:build !kerneltest && linux && (amd64 || arm64)

package umad

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"fabsh/fabric/sim"
	"fabsh/fabric/sim/run"
)

// hostDevice is the device that tests open.
const hostDevice = "ibsim0"

// onSubnet is set in the process whose tests run on the simulated subnet.
const onSubnet = "FABSHTEST_UMAD"

// TestMain runs all tests on a simulated subnet, if this host can: this program's own
// system calls are answered as ib_umad does.
func TestMain(m *testing.M) {
	run.Become(os.Args)
	if os.Getenv(onSubnet) != "" {
		goleak.VerifyTestMain(m)
	}
	status, err := runOnSubnet()
	if errors.Is(err, run.ErrUnsupported) {
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func runOnSubnet() (status int, err error) {
	f, o, err := sim.Parse("ring:n=3")
	if err != nil {
		return 0, err
	}
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	os.Setenv(onSubnet, "1")
	r, err := run.Start(run.ProgramOptions{Subnet: sim.New(f, o), Fabric: f, Program: program, Path: program, Args: os.Args})
	if err != nil {
		os.Unsetenv(onSubnet)
		return 0, err
	}
	return r.Wait()
}

// openHost opens the device of the simulated subnet.
func openHost(t *testing.T) *Transport {
	t.Helper()
	if os.Getenv(onSubnet) == "" {
		t.Skip(run.ErrUnsupported)
	}
	tr, err := Open(Options{Device: hostDevice})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

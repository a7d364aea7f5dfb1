package session

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestReadTyped: a read of a terminal returns what was typed, and never waits: Ctrl-C may have
// discarded what poll(2) has reported.
func TestReadTyped(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no terminals here: ", err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	var got []string
	read := func(keys string) {
		if keys != "" {
			master.WriteString(keys)
			p := []unix.PollFd{{Fd: int32(slave.Fd()), Events: unix.POLLIN}}
			for n := 0; n <= 0; n, _ = unix.Poll(p, -1) {
			}
		}
		b := make([]byte, 100)
		n, err := readTyped(slave, b)
		got = append(got, fmt.Sprintf("%q %v", b[:n], err))
	}
	read("one\r")
	read("")
	read("two\r")
	read("\x04")
	eagain := fmt.Sprintf("\"\" read /dev/pts/%d: resource temporarily unavailable", n)
	if diff := cmp.Diff([]string{`"one\n" <nil>`, eagain, `"two\n" <nil>`, `"" EOF`}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

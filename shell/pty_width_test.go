//go:build linux

package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// shows is what the screen shows of a statement. The marks are put together by
// the statement, so that their echo is none.
func (s *screen) shows(statement string) string {
	s.t.Helper()
	s.send(`print("<" + "<"); ` + statement + `; print(">" + ">")` + "\r")
	s.expect("<<\r\n")
	seen, _ := strings.CutSuffix(s.expect(">>\r\n"), ">>\r\n")
	return strings.ReplaceAll(seen, "\r", "")
}

// TestWidth: tables leave out columns on a narrow terminal, and text is broken
// between words; a wide one has all.
func TestWidth(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-q", "-t", "100", "-F", "sim:ring:n=2")
	s.expect("rw> ")
	width := func(columns uint16) {
		if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: columns}); err != nil {
			t.Fatal(err)
		}
	}
	s.send("f = discover()\r")
	s.expect("4n rw> ")
	for _, test := range []struct {
		columns         uint16
		statement, want string
	}{
		{80, "f.switches[0].ports", `
name        num  lid  state   physical_state  width  speed  peer
switch-1/1    1    1  active  link_up         4x     hdr    node-0001 HCA-1/1
switch-1/2    2    1  down    polling         -      -      -
switch-1/3    3    1  active  link_up         4x     hdr    switch-2/2
... not shown: peer_num, guid, node_guid, peer_guid (_.blocks() shows all)
`},
		{200, "f.switches[0].ports", `
name        num  lid  state   physical_state  width  speed  peer               peer_num  guid                node_guid           peer_guid
switch-1/1    1    1  active  link_up         4x     hdr    node-0001 HCA-1/1         1  0x0002c90300100000  0x0002c90300100000  0x0002c90310000000
switch-1/2    2    1  down    polling         -      -      -                         -  0x0002c90300100000  0x0002c90300100000  -
switch-1/3    3    1  active  link_up         4x     hdr    switch-2/2                2  0x0002c90300100000  0x0002c90300100000  0x0002c90300100010
`},
		{80, `smp_get("NodeInfo", [1, 999])`, `
    lid  node_type  num_ports  node_guid           port_guid
      1  switch             3  0x0002c90300100000  0x0002c90300100000
LID 999  error: timed out
... not shown: base_version, class_version and 6 more (_.blocks() shows all)
`},
		{200, `smp_get("NodeInfo", [1, 999])`, `
    lid  base_version  class_version  node_type  num_ports  partition_cap  device_id    revision  local_port_num  vendor_id  system_image_guid   node_guid           port_guid
      1             1              1  switch             3             32     0xd2f0  0x00000000               1   0x0002c9  0x0002c90300100000  0x0002c90300100000  0x0002c90300100000
LID 999  error: timed out
`},
		{80, `help("PortInfo.LMC")`, `
PortInfo.lmc (LMC): 3 bits at bit 277 (byte 34, bit 5 from the left), section
  14.2.5.6 of the specification
LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
A Set writes it: smp_set sends the value that it has read unless the field is
named.
`},
	} {
		width(test.columns)
		if d := cmp.Diff(test.want, "\n"+s.shows(test.statement)); d != "" {
			t.Errorf("%d %s (-want +got):\n%s", test.columns, test.statement, d)
		}
	}
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalColor: a terminal has color, and NO_COLOR, which the tests set, none.
func TestTerminalColor(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"--color=always", "\x1b[33m" + "down" + "\x1b[0m"},
		{"--color=auto", "  down  "},
	} {
		s := startTerminal(t, t.TempDir(), "-q", test.flag, "-F", "sim:ring:n=2", "-c", "discover().switches[0].ports")
		s.exit(0)
		if !strings.Contains(s.text, test.want) {
			t.Errorf("%s: %q", test.flag, s.text)
		}
	}
}

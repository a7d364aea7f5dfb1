package command

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A capture of one packet of another kind: ERF, RC SEND only from LID 7 to LID 9.
var otherPacket = strings.Join([]string{
	"4d3cb2a1 02000400 00000000 00000000 ffff0000 c5000000", // pcap, nanoseconds, 65535, ERF
	"01f15365 01000000 32000000 32000000",                   // packet: time, lengths
	"04000000 01f15365 15 04 0032 0000 0022",                // record
	"00 02 0009 0008 0007",                                  // LRH
	"04 00 ffff 00000011 00000000",                          // BTH
	"00000000 00000000",                                     // as long as a DETH
	"00000000 0000",                                         // CRCs
}, "")

// TestDecodeOther: a packet that is no MAD is named and skipped, in each format.
func TestDecodeOther(t *testing.T) {
	b, err := hex.DecodeString(strings.ReplaceAll(otherPacket, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "other.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	const skipped = "packet 1 skipped: not an unreliable datagram: opcode 0x04 (RC SEND only), LID 7 to LID 9, queue pair 0x11\n\n"
	for format, want := range map[string]string{"text": skipped, "json": skipped + "[]\n"} {
		var out bytes.Buffer
		c := decodeCommand(testProgram(t, &out, "-o", format))
		c.SetArgs([]string{file})
		if err := c.Execute(); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
}

// TestDecodeHeadline: the first line names an unknown method by its number, and a trap.
func TestDecodeHeadline(t *testing.T) {
	for m, want := range map[string]string{
		"01010110" + strings.Repeat("0", 24) + "0015":                                                            "Subn method 0x10 (PortInfo), port 0, extended_speeds 0",
		"01010105" + strings.Repeat("0", 24) + "0002" + strings.Repeat("0", 92) + "81000002 0080 0003 0000 0003": "SubnTrap(Notice), trap 128 (link state changed)",
		"01010105" + strings.Repeat("0", 24) + "0002" + strings.Repeat("0", 92) + "01 0002c9 0042 0003":          "SubnTrap(Notice), trap of vendor 0x0002c9, device 0x0042",
	} {
		m = strings.ReplaceAll(m, " ", "")
		var out bytes.Buffer
		c := decodeCommand(testProgram(t, &out))
		c.SetArgs([]string{m + strings.Repeat("0", 512-len(m))})
		err := c.Execute()
		if line, _, _ := strings.Cut(out.String(), "\n"); line != want || err != nil {
			t.Errorf("%v: %q, want %q", err, line, want)
		}
	}
}

package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/discover"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
	"fabsh/mad/internal/erf"
)

// TestTsharkFiles: tshark shows each MAD of a capture as Datagrams reads it, with its number, time
// and LIDs: of pcap, of pcapng as editcap writes it, and of ERF records. The same packets of another
// link type, which editcap writes, and of InfiniBand are read the same.
func TestTsharkFiles(t *testing.T) {
	ibsimtest.Path(t, "tshark")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	f, err := os.Create(path("a.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	e := simEngine(t, f)
	if _, err := discover.Sweep(context.Background(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) string {
		cmd := ibsimtest.Command(t, program, args...)
		cmd.Env = append(cmd.Env, "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(program, args, err)
		}
		return string(out)
	}
	run("editcap", "-F", "pcapng", path("a.pcap"), path("b.pcapng"))
	run("editcap", "-F", "nsecpcap", "-T", "user0", path("a.pcap"), path("user0.pcap"))
	whole, err := os.ReadFile(path("a.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	infiniband := bytes.Clone(whole[:24])
	infiniband[20] = byte(erf.LinkInfiniBand)
	var records []byte
	for _, p := range packets(t, whole) {
		b := erf.Append(nil, &p)
		binary.BigEndian.PutUint16(b[10:], uint16(len(b)))
		records = append(records, b...)
		for _, v := range []uint32{uint32(p.Time.Unix()), uint32(p.Time.Nanosecond()), uint32(len(b) - 16), uint32(len(b) - 16)} {
			infiniband = binary.LittleEndian.AppendUint32(infiniband, v)
		}
		infiniband = append(infiniband, b[16:]...)
	}
	for name, b := range map[string][]byte{"infiniband.pcap": infiniband, "records.erf": records} {
		if err := os.WriteFile(path(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var first []string // of a.pcap
	for _, name := range []string{"a.pcap", "b.pcapng", "records.erf", "infiniband.pcap", "user0.pcap"} {
		b, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		other := ""
		if name == "user0.pcap" {
			other = "infiniband"
		}
		var got []string
		incomplete, err := Datagrams(bytes.NewReader(b), name, other, func(d Datagram) error {
			if d.MAD == nil {
				return fmt.Errorf("packet %d: %s", d.Packet, d.Other)
			}
			h := mad.ParseHeader(d.MAD)
			got = append(got, fmt.Sprintf("%d %d.%06d %d %d 0x%02x 0x%02x 0x%04x 0x%016x", d.Packet, d.Time.Unix(), d.Time.Nanosecond()/1000, d.SLID, d.DLID, uint8(h.Class), uint8(h.Method), uint16(h.Attribute), h.TID))
			return nil
		})
		if err != nil || incomplete != nil || len(got) < 100 {
			t.Fatalf("%s: %d packets, %v, %v", name, len(got), err, incomplete)
		}
		if name == "user0.pcap" || name == "infiniband.pcap" { // tshark 4.0 does not read these
			local := len(got) - len(first)
			if d := cmp.Diff(first, got[local:]); d != "" {
				t.Errorf("%s: -a.pcap +%s\n%.2000s", name, name, d)
			}
			continue
		}
		args := []string{"-r", path(name), "-T", "fields", "-E", "separator=/s"}
		for _, field := range []string{"frame.number", "frame.time_epoch", "infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.mad.mgmtclass", "infiniband.mad.method", "infiniband.mad.attributeid", "infiniband.mad.transactionid"} {
			args = append(args, "-e", field)
		}
		var want []string
		for line := range strings.Lines(run("tshark", args...)) {
			words := strings.Fields(line)
			seconds, fraction, _ := strings.Cut(words[1], ".")
			words[1] = seconds + "." + fraction[:6]
			want = append(want, strings.Join(words, " "))
		}
		if strings.HasPrefix(got[0], strconv.Itoa(len(want)-len(got)+1)+" ") { // the facts of the local port are not shown
			want = want[len(want)-len(got):]
		}
		// The fraction of a second of ERF records has 32 bits.
		for i := range min(len(got), len(want)) {
			if a, b := strings.Fields(got[i]), strings.Fields(want[i]); len(b) == len(a) && a[1] != b[1] && near(a[1], b[1]) {
				want[i] = strings.Replace(want[i], b[1], a[1], 1)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -tshark +Datagrams\n%.2000s", name, d)
		}
		if name == "a.pcap" {
			first = got
		}
	}
}

// near reports whether two times, in seconds with six decimals, differ by a microsecond at most.
func near(a, b string) bool {
	x, errX := strconv.ParseInt(strings.Replace(a, ".", "", 1), 10, 64)
	y, errY := strconv.ParseInt(strings.Replace(b, ".", "", 1), 10, 64)
	return errX == nil && errY == nil && x-y <= 1 && y-x <= 1
}

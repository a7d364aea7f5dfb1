package trial

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/capture"
)

// secretive is a trial of a subnet whose names, GUIDs and serial numbers are to be replaced.
func secretive(spec string) *subject {
	return &subject{
		spec: spec, events: time.Minute,
		names: func(n *fabric.Node) string {
			switch id := n.ID(); {
			case n.IsSwitch() && id%2 == 0:
				return fmt.Sprintf("MF0;zurich-%d:MQM8700/U1", id)
			case n.IsSwitch():
				return fmt.Sprintf("zurich core %d", id)
			default:
				return fmt.Sprintf("acme%d.example.org HCA-1", id)
			}
		},
		during: func(subnet *sim.Subnet, f *fabric.Fabric) {
			for _, trap := range []int{128, 131, 144, 145, 256, 257} {
				subnet.Notices.SendTrap(trap, f.OfType(mad.NodeTypeSwitch)[0].GUID(), 1, nil)
			}
		},
	}
}

// originals are the identities of a subnet, in all orders of bytes and as text.
func originals(t *testing.T, s *subject, recording []byte) map[string][]byte {
	t.Helper()
	m := map[string][]byte{"site": []byte("zurich"), "domain": []byte("example.org"), "company": []byte("acme")}
	for i := range s.fabric.Nodes() {
		n := &s.fabric.Nodes()[i]
		guids := []mad.GUID{n.GUID(), n.Info().SystemImageGUID}
		for p := range n.Ports() {
			guids = append(guids, p.GUID())
		}
		for _, g := range guids {
			if g == 0 {
				continue
			}
			b := binary.BigEndian.AppendUint64(nil, uint64(g))
			m[g.String()] = b
			m[g.String()+" little-endian"] = binary.LittleEndian.AppendUint64(nil, uint64(g))
			m[g.String()+" as text"] = []byte(hex.EncodeToString(b))
			m[g.String()+" as uppercase text"] = []byte(strings.ToUpper(hex.EncodeToString(b)))
			m[g.String()+" as EUI-64"] = []byte(strings.Trim(strings.Join(slices.Collect(func(yield func(string) bool) {
				for _, x := range b {
					yield(hex.EncodeToString([]byte{x}))
				}
			}), ":"), ":"))
		}
	}
	for _, serial := range serials(t, recording) {
		m["serial number "+serial] = []byte(serial)
	}
	return m
}

// serials are the serial numbers in a recording.
func serials(t *testing.T, recording []byte) (list []string) {
	t.Helper()
	_, err := capture.Datagrams(bytes.NewReader(recording), "trial.pcap", "", func(d capture.Datagram) error {
		h := mad.ParseHeader(d.MAD)
		if a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute); a != nil && h.Method.IsResponse() {
			data := d.MAD[a.Offset():]
			for _, f := range a.Resolve(data, h.Modifier).Flat() {
				if (f.Script == "serial_number" || f.Script == "vendor_sn") && f.Text(data) != "" && !slices.Contains(list, f.Text(data)) {
					list = append(list, f.Text(data))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 2 {
		t.Fatalf("serial numbers: %q", list)
	}
	return list
}

// unpacked is the file, and the MADs in it without what is between them: a table that was cut
// into segments is whole.
func unpacked(t *testing.T, recording []byte) []byte {
	t.Helper()
	all := bytes.Clone(recording)
	_, err := capture.Datagrams(bytes.NewReader(recording), "trial.pcap", "", func(d capture.Datagram) error {
		if mad.IsSegment(d.MAD) {
			all = append(all, d.MAD[mad.SADataOffset:]...)
		} else {
			all = append(all, d.MAD...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAnonymous: no name, GUID or serial number of the subnet is in the recording.
func TestAnonymous(t *testing.T) {
	s := secretive("fattree:k=4,levels=2,registers=yes,ar=updn,vports=2")
	report, recording := s.run(t)
	anonymous, err := capture.Anonymize(recording)
	if err != nil {
		t.Fatal(err)
	}
	before, after := unpacked(t, recording), unpacked(t, anonymous.Recording)
	found := 0
	for what, b := range originals(t, s, recording) {
		if bytes.Contains(before, b) {
			found++
		}
		if at := bytes.Index(after, b); at >= 0 {
			t.Errorf("%s is at byte %d", what, at)
		}
	}
	if found < 30 {
		t.Errorf("only %d identities are in the original", found)
	}
	if got := replayed(t, anonymous.Recording, time.Minute).String(); got != report.String() {
		t.Error("the report of the replay differs")
	}
	for _, kept := range []string{"MF0;", ":MQM8700/U1", " HCA-1"} {
		if !bytes.Contains(after, []byte(kept)) {
			t.Errorf("%q is missing", kept)
		}
	}
	again, err := capture.Anonymize(recording)
	if err != nil || !bytes.Equal(again.Recording, anonymous.Recording) {
		t.Errorf("a second time the result differs: %v", err)
	}
}

// TestRecordings: the recordings of real devices in testdata replay to the reports beside them,
// and so does the recording of a simulated subnet.
func TestRecordings(t *testing.T) {
	report, recording := secretive("ring:n=2").run(t)
	anonymous, err := capture.Anonymize(recording)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"simulated.pcap": anonymous.Recording, "simulated.pcap.txt": []byte(report.String())} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{folder, "testdata"} {
		list, err := filepath.Glob(filepath.Join(folder, "*.pcap"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range list {
			recording, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path+".txt", replayed(t, recording, time.Minute).String())
		}
	}
}

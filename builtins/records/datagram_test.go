package records

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// datagram is a MAD with that attribute, filled by chance, and its header.
func datagram(a *mad.Attribute, m mad.Method, random *rand.Rand) []byte {
	b := make([]byte, mad.Size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	h := mad.Header{Class: a.Class, ClassVersion: a.Version, Method: m, Attribute: a.ID}
	h.Put(b)
	if a.Class == mad.ClassSubnAdm {
		clear(b[mad.RMPPOffset:mad.SAKeyOffset]) // not part of a transfer
		b[48] = 0                                // nor is it one of version 1
	}
	if a.OUI != 0 {
		copy(b[mad.VendorOUIOffset:], []byte{byte(a.OUI >> 16), byte(a.OUI >> 8), byte(a.OUI)})
	}
	return b
}

// TestAnnotateAll: of each attribute every field is told of, and no key, as text
// and as JSON.
func TestAnnotateAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := 0
	for _, a := range mad.Attributes() {
		b := datagram(a, mad.MethodGetResp, random)
		text := datagramText(b, nil)
		encoded, err := lang.Render(Datagram(b), lang.FormatJSONL)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range mad.Dissect(b) {
			found = found || p.Layout.Name == a.Name && p.Offset == a.Offset()
			for i := range p.Layout.Flat() {
				f := &p.Layout.Flat()[i]
				if !strings.Contains(text, "  "+f.Script) {
					t.Errorf("%v %s: nothing of %s", a.Class, a.Name, f.Script)
				}
				if !strings.Contains(encoded, `"`+f.Script+`":`) {
					t.Errorf("%v %s: no %s in JSON", a.Class, a.Name, f.Script)
				}
				if !f.Key {
					continue
				}
				keys++
				for e := range f.Count {
					secret := f.At(e).Bytes(p.Data)
					for _, s := range []string{hex.EncodeToString(secret), strings.TrimLeft(hex.EncodeToString(secret), "0"), spaced(secret)} {
						if len(s) > 3 && strings.Contains(text+encoded, s) {
							t.Errorf("%v %s: %s shows its key", a.Class, a.Name, f.Script)
						}
					}
				}
			}
		}
		if found == a.Older {
			t.Errorf("%v %s: it is not among the parts", a.Class, a.Name)
		}
	}
	if keys < 50 {
		t.Errorf("only %d keys were looked for", keys)
	}
}

// spaced are the bytes as a dump writes them.
func spaced(b []byte) string {
	var words []string
	for _, c := range b {
		words = append(words, hex.EncodeToString([]byte{c}))
	}
	return strings.Join(words, " ")
}

// TestHeadline: an attribute has its name in each version of the class, even
// where only the layout of another one is known, and methods that version's.
func TestHeadline(t *testing.T) {
	for want, h := range map[string]mad.Header{
		"SubnAdmInform(InformInfo)":              {ClassVersion: 1, Method: mad.MethodInform, Attribute: 0x03},
		"SubnAdmConfig(ServiceRecord)":           {ClassVersion: 1, Method: mad.MethodConfig, Attribute: 0x31},
		"SubnAdmDelete(ServiceRecord)":           {ClassVersion: 2, Method: mad.MethodDelete, Attribute: 0x31},
		"SubnAdmGetBulkResp(NodeRecord): ok":     {ClassVersion: 1, Method: mad.MethodGetTraceTableResp, Attribute: 0x11},
		"SubnAdmGetTraceTableResp(0x7777): busy": {ClassVersion: 2, Method: mad.MethodGetTraceTableResp, Attribute: 0x7777, Status: mad.StatusBusy},
		"SubnAdmGet(RangeRecord)":                {ClassVersion: 2, Method: mad.MethodGet, Attribute: 0x34},
	} {
		h.Class = mad.ClassSubnAdm
		m := make([]byte, mad.Size)
		h.Put(m)
		if got, _, _ := strings.Cut(datagramText(m, nil), "\n"); got != want {
			t.Errorf("version %d: %q, want %q", h.ClassVersion, got, want)
		}
	}
}

// TestAnnotateCut: of a MAD that ends early, neither a field beyond the end is
// told, nor what there is of a key.
func TestAnnotateCut(t *testing.T) {
	b := datagram(mad.AttrPortInfo, mad.MethodGetResp, rand.New(rand.NewPCG(3, 4)))
	text := datagramText(b[:mad.SMPDataOffset+7], nil)
	encoded, err := lang.Render(Datagram(b[:mad.SMPDataOffset+7]), lang.FormatJSON)
	if err != nil || strings.Contains(encoded, "gid_prefix") || strings.Contains(encoded, hex.EncodeToString(b[mad.SMPDataOffset:][:7])) {
		t.Errorf("%v\n%s", err, encoded)
	}
	if strings.Contains(text, "gid_prefix") || strings.Contains(text, spaced(b[mad.SMPDataOffset:][:7])) || !strings.Contains(text, "note: 71 bytes: a MAD has 256\n") {
		t.Errorf("%s", text)
	}
}

func FuzzAnnotate(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, a := range mad.Attributes() {
		f.Add(datagram(a, mad.MethodGetResp, random))
		f.Add(datagram(a, mad.MethodGet, random))
	}
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, m []byte) {
		if _, err := lang.Render(Datagram(m), lang.FormatJSON); err != nil {
			t.Fatal(err)
		}
		text := datagramText(m, nil)
		for line := range strings.Lines(text) {
			if strings.TrimRight(line, " \n")+"\n" != line || strings.ContainsFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q", line)
			}
		}
	})
}

// TestAnnotateOldRanges: a class that version 1.0 of the specification reserves
// is said to be one.
func TestAnnotateOldRanges(t *testing.T) {
	const note = "is reserved in version 1.0 of the specification"
	for class, want := range map[byte]bool{0x04: false, 0x0a: false, 0x1f: false, 0x20: true, 0x21: true, 0x32: true, 0x4f: true, 0x81: false} {
		m := make([]byte, mad.Size)
		m[0], m[1], m[2], m[3] = 1, class, 1, 1
		if got := strings.Contains(datagramText(m, nil), note); got != want {
			t.Errorf("class %#02x: %v", class, got)
		}
	}
}

// TestDatagramUndefined: the data of a Get of subnet management are not shown as values; the fields of
// a report are, also those that are 0.
func TestDatagramUndefined(t *testing.T) {
	get := make([]byte, mad.Size)
	h := mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrPortInfo.ID}
	h.Put(get)
	copy(get[mad.SMPDataOffset:], "secretkey") // where an answer has the M_Key
	report := make([]byte, mad.Size)
	h = mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodReport, Attribute: mad.AttrSubnAdmNotice.ID}
	h.Put(report)
	perf := make([]byte, mad.Size) // its Get selects a port
	h = mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrPortCounters.ID}
	h.Put(perf)
	for _, tt := range []struct {
		m    []byte
		want string
		not  string
	}{
		{get, "PortInfo: the data of a Get are undefined\n", "gid_prefix"},
		{get, "PortInfo: ", "73 65 63"},
		{report, "notice_toggle", "undefined"},
		{report, "notice_count", "undefined"},
		{perf, "port_select", "undefined"},
	} {
		if text := datagramText(tt.m, nil); !strings.Contains(text, tt.want) || strings.Contains(text, tt.not) {
			t.Errorf("want %q, without %q:\n%s", tt.want, tt.not, text)
		}
	}
	if encoded, err := lang.Render(Datagram(get), lang.FormatJSON); err != nil || strings.Contains(encoded, "gid_prefix") || strings.Contains(encoded, "736563") {
		t.Errorf("%v\n%s", err, encoded)
	}
}

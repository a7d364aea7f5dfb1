package mad

import (
	"strings"
	"testing"
)

// TestRMPPStatusText: each reason that the enumeration knows has a text, and of
// the others whose they are.
func TestRMPPStatusText(t *testing.T) {
	var got []string
	for s := range 256 {
		text := RMPPStatus(s).Text()
		_, declared := WordsRMPPStatus.Word()[uint64(s)]
		if known := text != "unknown" && !strings.HasSuffix(text, "specific reason"); known != (declared && s != 0) {
			t.Errorf("status %d: %q", s, text)
		}
		if s == 0 || text != got[len(got)-1] {
			got = append(got, text)
		}
	}
	want := []string{"unknown", "resources exhausted", "unknown", "total time too long", "inconsistent last segment and payload length",
		"inconsistent first segment and segment number", "bad RMPP type", "new window too small", "segment number too big", "illegal status",
		"unsupported RMPP version", "too many retries", "unspecified", "class-specific reason", "vendor-specific reason"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// FuzzHeader: a header that was read is written the same, but for what is
// reserved and the bits of directed routes.
func FuzzHeader(f *testing.F) {
	f.Add(request(ClassSubn, MethodGet, AttrNodeInfo.ID, 1, nil))
	f.Add(directed(request(ClassSubn, MethodGet, AttrNodeInfo.ID, 1, nil), 0, 1))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) < HeaderSize {
			return
		}
		h := ParseHeader(m)
		again := make([]byte, HeaderSize)
		h.Put(again)
		if got := ParseHeader(again); got != h {
			t.Fatalf("%+v becomes %+v", h, got)
		}
	})
}

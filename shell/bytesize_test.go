package shell

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]string{
		"64MiB": "64 MiB", "300M": "300 MiB", "4GiB": "4 GiB", "2G": "2 GiB", "1.5GiB": "1536 MiB", "0.5T": "512 GiB", "67108865": "67108865 B",
		"": "", "4GB": "", "4g": "", "GiB": "", "4 GiB": "", "-4GiB": "", "63MiB": "", "NaN": "", "inf": "", "1e30": "", "0x1p40": "1 TiB", "4GiBGiB": "",
	} {
		var s byteSize
		err := s.Set(text)
		if got := s.String(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	if got := defaultMemory(); got < minMemory || got > 4<<30 {
		t.Errorf("the default is %v", &got)
	}
}

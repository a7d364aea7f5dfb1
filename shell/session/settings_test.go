package session

import (
	"testing"
	"time"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]string{
		"64MiB": "64 MiB", "300M": "300 MiB", "4GiB": "4 GiB", "2G": "2 GiB", "1.5GiB": "1536 MiB", "0.5T": "512 GiB", "67108865": "67108865 B",
		"": "", "4GB": "", "4g": "", "GiB": "", "4 GiB": "", "-4GiB": "", "63MiB": "", "NaN": "", "inf": "", "1e30": "", "0x1p40": "1 TiB", "4GiBGiB": "",
	} {
		var s ByteSize
		err := s.Set(text)
		if got := s.String(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	if got := defaultMemory(); got < minMemory || got > 4<<30 {
		t.Errorf("the default is %v", &got)
	}
}

func TestFlagValues(t *testing.T) {
	for text, want := range map[string]time.Duration{"500": 500 * time.Millisecond, "1.5": 1500 * time.Microsecond, "2s": 2 * time.Second, "1m": time.Minute} {
		d := Duration{Unit: time.Millisecond}
		if err := d.Set(text); err != nil || d.Value != want {
			t.Errorf("%s: got %v, %v, want %v", text, d.Value, err, want)
		}
	}
	for _, text := range []string{"", "0", "-5", "-1s", "x", "5 s", "NaN", "+Inf", "1e300", "100h"} {
		d := Duration{Unit: time.Millisecond}
		if err := d.Set(text); err == nil {
			t.Errorf("%q: got %v", text, d.Value)
		}
	}
	n := Number{min: 1, max: 15}
	for _, text := range []string{"", "0", "16", "-1", "x", "1.5"} {
		if err := n.Set(text); err == nil || n.IsSet {
			t.Errorf("%q: got %v", text, n)
		}
	}
	if err := n.Set("0xf"); err != nil || n.Value != 15 {
		t.Errorf("got %v, %v", n, err)
	}
}

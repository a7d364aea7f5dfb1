package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// inUTF16 is text in UTF-16 with a byte order mark.
func inUTF16(text string, order binary.AppendByteOrder) (b []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

// TestUTF16: tables that Windows PowerShell has written to a file are read like tables in
// UTF-8; what is cut within a character is refused.
func TestUTF16(t *testing.T) {
	const table = "Unicast lids [0-3] of switch Lid 2 guid 0x0c42a10300001000 ('räck \U0001F600'):\r\n0x0001 001 # host\r\n0x0002 000 # here\r\n2 lids dumped\r\n"
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		packed := inUTF16(table, order)
		n := 0
		for l, err := range LFTs(bytes.NewReader(packed), "x") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; l.Entries[1] != 1 || l.Entries[2] != 0 {
				t.Errorf("entries %v", l.Entries)
			}
		}
		if n != 1 {
			t.Errorf("%v: %d tables, want 1", order, n)
		}
		var err error
		for _, err = range LFTs(bytes.NewReader(packed[:len(packed)-1]), "x") {
		}
		if err == nil || !strings.Contains(err.Error(), "invalid UTF-16: an odd number of bytes") {
			t.Errorf("%v, cut: %v", order, err)
		}
	}
}

// FuzzUTF16: any bytes become valid UTF-8, and an encoded text becomes the text.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"), "a\U0001F600")
	f.Add([]byte("\xfe\xff\xd8\x00"), strings.Repeat("é", 5000))
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if b, err := io.ReadAll(utf8Text(bufio.NewReader(bytes.NewReader(data)), "x")); err == nil && len(data) > 1 && (string(data[:2]) == "\xff\xfe" || string(data[:2]) == "\xfe\xff") && !utf8.Valid(b) {
			t.Errorf("%q became %q", data, b)
		}
		text = strings.ToValidUTF8(text, "?")
		b, err := io.ReadAll(utf8Text(bufio.NewReader(bytes.NewReader(inUTF16(text, binary.LittleEndian))), "x"))
		if err != nil || string(b) != "\ufeff"+text {
			t.Errorf("%q became %q, %v", text, b, err)
		}
	})
}

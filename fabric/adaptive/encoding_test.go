package adaptive

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fabsh/mad"
)

func TestEncode(t *testing.T) {
	want := "01" + "03" + "0007" + "0001" + "0c" + "00" + // version, flags, SLs, transports UC and UD, no text
		"04" + strings.Repeat("00", 32) + "0001" + strings.Repeat("00", 14) + "0002" + strings.Repeat("00", 14) +
		"01" + "02" + "02" + strings.Repeat("00", 31) + "06" + strings.Repeat("00", 31) + "08" + "02" + "00000102" + // groups 0 and 1
		"03" + "01" + "08" + "ff010405" + "02ff0009" + "0102" + "0104" + "0105" + "0106" + "0107" + "0202" + "0109" +
		"01" + "03" + "ff03ff" + "0102" + "0104" + "0102" + "00"
	b := example().Append(nil)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding\n%s, want\n%s", got, want)
	}
	s, rest, err := Decode(append(b, 7, 7))
	if err != nil || !bytes.Equal(rest, []byte{7, 7}) {
		t.Fatalf("%v, rest %v", err, rest)
	}
	same := example()
	same.Tables[0].Groups.at = nil
	if !reflect.DeepEqual(s, same) {
		t.Errorf("decoded\n%+v, want\n%+v", s, same)
	}
	for n := range b {
		if _, _, err := Decode(b[:n]); err == nil {
			t.Errorf("the first %d bytes are accepted", n)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 { // damaged bytes: no panic, and what is accepted is encoded again
		bad := slices.Clone(b)
		for range 1 + random.IntN(3) {
			bad[random.IntN(len(bad))] = byte(random.Uint32())
		}
		checkDecode(t, bad)
	}
}

// checkDecode checks that what b has, if anything, is stable under encoding.
func checkDecode(t *testing.T, b []byte) {
	s, _, err := Decode(b)
	if err != nil {
		return
	}
	once := s.Append(nil)
	again, rest, err := Decode(once)
	if err != nil || len(rest) > 0 || !bytes.Equal(again.Append(nil), once) {
		t.Fatalf("%x\nis encoded as %x: %v", b, once, err)
	}
	for in := range 5 {
		for lid := range mad.LID(10) {
			p := Packet{In: uint8(in), SL: uint8(in), LID: lid}
			if a, b := ways(s.Choose(p, nil)), ways(again.Choose(p, nil)); a != b {
				t.Fatalf("%+v: %s, then %s", p, a, b)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(example().Append(nil))
	f.Add((&Switch{Unknown: "no answer"}).Append(nil))
	f.Fuzz(checkDecode)
}

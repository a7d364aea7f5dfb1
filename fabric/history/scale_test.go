package history

import (
	"math"
	"testing"
)

func TestSampleBytes(t *testing.T) {
	for v, want := range map[float64]byte{math.NaN(): 0, 0: 1, -1: 1, 1e-9: 2, 1e-4: 2, 1.1e-4: 3, 1e9: 255} {
		if got := sampleByte(v); got != want {
			t.Errorf("%g: %d, want %d", v, got, want)
		}
	}
	for v := 1e-4; v < 2e6; v *= 1.013 {
		if got := sampleValue(sampleByte(v)); math.Abs(got/v-1) > 0.05 {
			t.Errorf("%g became %g", v, got)
		}
	}
	for b := range 256 {
		for _, kind := range []string{SampleMean, SampleTemperature} {
			if got := encodeSample(kind, decodeSample(kind, byte(b))); got != byte(b) {
				t.Errorf("%s %d became %d", kind, b, got)
			}
		}
	}
	if got := decodeSample(SampleTemperature, encodeSample(SampleTemperature, -5.4)); got != -5 {
		t.Errorf("-5.4 degrees became %g", got)
	}
	for _, c := range [][3]byte{{10, 10, 1}, {10, 12, 3}, {10, 9, 1}, {0, 9, 0}, {10, 0, 0}, {1, 255, 255}} {
		stored := mostStep(c[0], c[1])
		if stored != c[2] {
			t.Errorf("most of %d and %d: %d", c[0], c[1], stored)
		}
		if back := mostByte(c[0], stored); stored != 0 && back != max(c[0], c[1]) {
			t.Errorf("%d and %d became %d", c[0], c[1], back)
		}
	}
}

func TestTiles(t *testing.T) {
	var a tile
	var d dayTile
	for i := range a {
		for h := range a[i] {
			a[i][h] = byte(i*7 + h)
		}
		d[i] = [2]byte{byte(i), byte(255 - i)}
	}
	data := encodeTile(&a)
	if b, err := decodeTile(data); err != nil || *b != a {
		t.Errorf("a tile became another: %v", err)
	}
	if b, err := decodeDay(encodeDay(&d)); err != nil || *b != d {
		t.Errorf("a day became another: %v", err)
	}
	if b, err := decodeHour(encodeHour([]byte{1, 2, 3})); err != nil || string(b) != "\x01\x02\x03" {
		t.Errorf("an hour became %v: %v", b, err)
	}
	if _, err := decodeTile(encodeDay(&d)); err == nil {
		t.Error("a day was taken for a tile")
	}
	if _, err := decodeTile(encodeHour(make([]byte, maxPorts))); err == nil {
		t.Error("a large frame was taken for a tile")
	}
	for bit := range 8 * len(data) {
		damaged := append([]byte(nil), data...)
		damaged[bit/8] ^= 1 << (bit % 8)
		if b, err := decodeTile(damaged); err == nil && *b != a {
			t.Errorf("bit %d: another tile without an error", bit)
		}
	}
}

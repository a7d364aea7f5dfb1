package spec

import (
	"math"
	"strconv"
	"strings"
)

// ParseRate reads a number per second: "2/s", "5/m" (per minute), "1/h", or "2".
func ParseRate(text string) (float64, bool) {
	number, unit, given := strings.Cut(text, "/")
	seconds, ok := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	if !given {
		seconds, ok = 1, true
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return f / seconds, ok && err == nil && ValidRate(f/seconds)
}

// ParseBandwidth reads a number of bytes per second: "10GB/s", "100Gb/s" (bits), "1e9",
// with k, M, G or T.
func ParseBandwidth(text string) (float64, bool) {
	text, unit := strings.CutSuffix(text, "/s")
	per := 1.0
	if unit {
		var bytes, bits bool
		if text, bytes = strings.CutSuffix(text, "B"); !bytes {
			if text, bits = strings.CutSuffix(text, "b"); !bits {
				return 0, false
			}
			per = 1. / 8
		}
		for i, prefix := range []string{"k", "M", "G", "T"} {
			if rest, ok := strings.CutSuffix(text, prefix); ok {
				text, per = rest, per*math.Pow(1000, float64(i+1))
				break
			}
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f * per, err == nil && ValidRate(f*per)
}

// ValidRate reports whether a rate is valid. The largest fills a counter of 64 bits in
// seconds; sums and times of larger ones would no longer be numbers.
func ValidRate(rate float64) bool { return rate >= 0 && rate <= 1e18 }

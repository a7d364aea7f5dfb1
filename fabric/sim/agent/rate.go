package agent

import "fabsh/mad"

// rates are the codes of PathRecord.Rate by rising rate, in units of half a Gb/s.
var rates = []struct {
	half uint16
	code mad.Rate
}{
	{5, mad.Rate2_5}, {10, mad.Rate5}, {20, mad.Rate10}, {28, mad.Rate14}, {40, mad.Rate20}, {50, mad.Rate25},
	{56, mad.Rate28}, {60, mad.Rate30}, {80, mad.Rate40}, {100, mad.Rate50}, {112, mad.Rate56}, {120, mad.Rate60},
	{160, mad.Rate80}, {200, mad.Rate100}, {224, mad.Rate112}, {240, mad.Rate120}, {336, mad.Rate168},
	{400, mad.Rate200}, {600, mad.Rate300}, {800, mad.Rate400}, {1200, mad.Rate600}, {1600, mad.Rate800}, {2400, mad.Rate1200}, {3200, mad.Rate1600},
}

// RateCode returns the code of the highest rate that is at most half.
func RateCode(half uint16) mad.Rate {
	code := rates[0].code
	for _, r := range rates {
		if r.half <= half {
			code = r.code
		}
	}
	return code
}

// halfGbps returns the rate of a code in units of half a Gb/s; 0 if the code is unknown.
func halfGbps(code mad.Rate) int {
	for _, r := range rates {
		if r.code == code {
			return int(r.half)
		}
	}
	return 0
}

// selectorHolds reports whether the value matches the requested one, by the selector.
func selectorHolds(s mad.Selector, value, asked int) bool {
	switch s {
	case mad.SelectorGreaterThan:
		return value > asked
	case mad.SelectorLessThan:
		return value < asked
	case mad.SelectorExactly:
		return value == asked
	}
	return true // the largest available
}

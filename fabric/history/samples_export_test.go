package history

// For tests of series: rows of samples as the recorder writes them.

var (
	EncodeSample = encodeSample
	MostStep     = mostStep
	TableNames   = tableNames
)

// EncodeHour returns a row of hour with the samples of ports.
func EncodeHour(kind string, ports map[int]float64) []byte {
	var b []byte
	for id, v := range ports {
		for len(b) <= id {
			b = append(b, noSample)
		}
		b[id] = encodeSample(kind, v)
	}
	return encodeHour(b)
}

// EncodeTile returns a tile in which one port has samples.
func EncodeTile(port int, of func(hour int) byte) []byte {
	t := new(tile)
	for h := range tileHours {
		t[port%tilePorts][h] = of(h)
	}
	return encodeTile(t)
}

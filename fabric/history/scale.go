package history

import (
	"errors"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Kinds of samples: words of kind "sample". Those of an hour are in hour and tile, those of a day in hour
// alone, at the begin of the day.
const (
	SampleMean        = "xmit_mean"   // sent in the hour, in MB/s
	SampleMost        = "xmit_most"   // sent in its busiest cycle, in MB/s; stored as steps above the mean (mostStep)
	SampleWait        = "wait"        // share of waiting for credits in waiting and sending, in percent
	SampleTemperature = "temperature" // of the module, in degrees Celsius, a day's largest; linear
	SampleRxPower     = "rx_power"    // the weakest lane in a day, in mW
	SampleTxPower     = "tx_power"    // the weakest lane in a day, in mW
	SampleBERGrade    = "ber_grade"   // the worst of a day (Grade); linear
)

// A byte has a sample in logarithmic steps: 0 is no reading, 1 is zero, and from 2 on each step is 10 %
// more than the one before. 2 is smallest, which also values below it become.
const (
	noSample   byte = 0
	zeroSample byte = 1
	smallest        = 1e-4
	step            = 1.1
)

// sampleByte returns the nearest step of v; noSample for NaN, zeroSample for zero and less.
func sampleByte(v float64) byte {
	switch {
	case math.IsNaN(v):
		return noSample
	case v <= 0:
		return zeroSample
	}
	return byte(min(255, max(2, 2+math.Round(math.Log(v/smallest)/math.Log(step)))))
}

// sampleValue returns the value of a byte, within 5 %; NaN for noSample.
func sampleValue(b byte) float64 { return sampleValues[b] }

var sampleValues = func() (values [256]float64) {
	values[noSample] = math.NaN()
	for b := 2; b < len(values); b++ {
		values[b] = smallest * math.Pow(step, float64(b-2))
	}
	return values
}()

// linearZero is the byte of zero of linear kinds: degrees from -99 to 155.
const linearZero = 100

// encodeSample returns the byte of a sample of a kind, which for SampleMost is absolute (mostStep).
func encodeSample(kind string, v float64) byte {
	if kind != SampleTemperature && kind != SampleBERGrade {
		return sampleByte(v)
	}
	if math.IsNaN(v) {
		return noSample
	}
	return byte(min(255, max(1, linearZero+math.Round(v))))
}

// decodeSample returns the value of a byte of a kind, which for SampleMost is absolute (mostByte); NaN for noSample.
func decodeSample(kind string, b byte) float64 {
	if kind != SampleTemperature && kind != SampleBERGrade {
		return sampleValue(b)
	}
	if b == noSample {
		return math.NaN()
	}
	return float64(b) - linearZero
}

// mostStep returns how SampleMost is stored: 1 is the mean, and each more a step above it.
func mostStep(mean, most byte) byte {
	if mean == noSample || most == noSample {
		return noSample
	}
	return byte(min(255, max(0, int(most)-int(mean))+1))
}

// mostByte returns the byte of SampleMost of its stored form.
func mostByte(mean, stored byte) byte {
	if mean == noSample || stored == noSample {
		return noSample
	}
	return byte(min(255, int(mean)+int(stored)-1))
}

// Tiles. A port is in block id / tilePorts, at place id % tilePorts; its byte of an hour in a row of hour
// is at its id.
const (
	tilePorts = 256
	tileHours = 24
	// maxPorts limits the ports of an hour.
	maxPorts = 1 << 22
)

// tile is the samples of a kind of tilePorts ports in a day, UTC.
type tile [tilePorts][tileHours]byte

// encodeTile packs a tile: a zstd frame with a checksum, of the hours of one port after the other.
func encodeTile(t *tile) []byte {
	plain := make([]byte, 0, tilePorts*tileHours)
	for i := range t {
		plain = append(plain, t[i][:]...)
	}
	return pack(plain)
}

// decodeTile unpacks what encodeTile packed.
func decodeTile(data []byte) (*tile, error) {
	plain, err := unpack(data, tilePorts*tileHours)
	if err != nil {
		return nil, err
	}
	if len(plain) != tilePorts*tileHours {
		return nil, errLength
	}
	t := new(tile)
	for i := range t {
		copy(t[i][:], plain[i*tileHours:])
	}
	return t, nil
}

// encodeHour packs a row of hour: a byte a port, by id.
func encodeHour(ports []byte) []byte { return pack(ports) }

// decodeHour unpacks what encodeHour packed. Ports beyond its length have no reading.
func decodeHour(data []byte) ([]byte, error) { return unpack(data, maxPorts) }

// dayTile is the samples of a kind of tilePorts ports in a day: the mean of the hours, and the largest,
// for SampleMost both absolute.
type dayTile [tilePorts][2]byte

// encodeDay packs a row of day.
func encodeDay(t *dayTile) []byte {
	plain := make([]byte, 0, 2*tilePorts)
	for i := range t {
		plain = append(plain, t[i][:]...)
	}
	return pack(plain)
}

// decodeDay unpacks what encodeDay packed.
func decodeDay(data []byte) (*dayTile, error) {
	plain, err := unpack(data, 2*tilePorts)
	if err != nil {
		return nil, err
	}
	if len(plain) != 2*tilePorts {
		return nil, errLength
	}
	t := new(dayTile)
	for i := range t {
		copy(t[i][:], plain[2*i:])
	}
	return t, nil
}

var errLength = errors.New("the samples are damaged: wrong length")

var packer = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
})

func pack(plain []byte) []byte {
	z, err := packer()
	if err != nil {
		panic(err) // options that never change
	}
	return z.EncodeAll(plain, nil)
}

var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxHours))
})

func unpack(data []byte, most int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(data); err != nil || !h.HasCheckSum || h.Skippable {
		return nil, errors.New("the samples are damaged: no frame of zstd with a checksum")
	}
	z, err := unpacker()
	if err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize > uint64(most) {
		return nil, errLength
	}
	plain, err := z.DecodeAll(data, nil)
	if err != nil {
		return nil, errors.New("the samples are damaged: " + err.Error())
	}
	if len(plain) > most {
		return nil, errLength
	}
	return plain, nil
}

package format

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// packing is a way in which one file is packed.
type packing struct {
	name  string
	magic string // the first bytes of a packed file
	open  func(r *bufio.Reader) (io.Reader, error)
}

// packings are all of them.
var packings = []packing{
	{"gzip", "\x1f\x8b", func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"xz", "\xfd7zXZ\x00", openXZ},
	{"zstd", "\x28\xb5\x2f\xfd", func(r *bufio.Reader) (io.Reader, error) {
		// With one goroutine, the caller's, there is nothing to close.
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	}},
	{"bzip2", "BZh", func(r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
}

// maxWindow is the largest window of a packed file, in bytes: that of xz -9, and twice that of
// zstd without --ultra --long.
const maxWindow = 64 << 20

// openXZ opens a file packed by xz. Its header has the size of the dictionary, up to 4 GB. Later
// blocks have one too, but take only the memory that their data fills, which is limited.
func openXZ(r *bufio.Reader) (io.Reader, error) {
	const streamHeader, blockHeader = 12, 1024 // bytes; the second is the most
	head, _ := r.Peek(streamHeader + blockHeader)
	// A block begins with its size, flags, and the filter LZMA2: 0x21, 1 byte of properties
	// (the .xz file format, 3.1 and 5.3.1). Sizes may stand before the filter.
	for i := streamHeader + 2; i+2 < min(len(head), streamHeader+32); i++ {
		if head[i] == 0x21 && head[i+1] == 1 {
			if size, err := lzma.DecodeDictCap(head[i+2]); err != nil || size > maxWindow {
				return nil, fmt.Errorf("its dictionary is larger than %d MB", maxWindow>>20)
			}
			break
		}
	}
	return xz.NewReader(r)
}

// packingOf returns how a file with this beginning is packed; nil: it is not.
func packingOf(in *bufio.Reader) *packing {
	head, _ := in.Peek(8) // the next read meets an error again
	for i := range packings {
		if p := &packings[i]; len(head) >= len(p.magic) && string(head[:len(p.magic)]) == p.magic {
			return p
		}
	}
	return nil
}

// maxUnpacked is how long a file of rows may be once unpacked, in bytes. gzip packs up to
// 1,000 to one, so the size of the packed file bounds no time.
const maxUnpacked = 4 << 30

// unpacked returns a reader of r, unpacked if it is packed, as dumps are often kept, and
// limited to max bytes both packed and unpacked. Text in UTF-16 becomes UTF-8. Damage is an error
// of the last read; checksums are compared.
func unpacked(r io.Reader, name string, max int64) (io.Reader, error) {
	in, err := plainBytes(r, name, max)
	if err != nil {
		return nil, err
	}
	return utf8Text(in, name), nil
}

// plainBytes does what unpacked does, without a conversion of text.
func plainBytes(r io.Reader, name string, max int64) (*bufio.Reader, error) {
	r, err := Bounded(r, name, max)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(r)
	p := packingOf(in)
	if p == nil {
		return in, nil
	}
	z, err := p.open(in)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid %s file: %w", name, p.name, err)
	}
	plain, err := Bounded(&packedReader{z, p.name}, name, min(max, maxUnpacked))
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(plain), nil
}

// packedReader names the packing in errors.
type packedReader struct {
	io.Reader
	packing string
}

func (p *packedReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &packedError{p.packing, err}
	}
	return n, err
}

// packedError is the error of a packed file that is damaged.
type packedError struct {
	packing string
	err     error
}

func (e *packedError) Error() string {
	return fmt.Sprintf("the %s file is damaged or cut short: %v", e.packing, e.err)
}

func (e *packedError) Unwrap() error { return e.err }

// Unpack returns a reader of r, unpacked if it is packed by gzip, xz, zstd or bzip2, and limited to
// max bytes both packed and unpacked. name is the name of the file in errors.
func Unpack(r io.Reader, name string, max int64) (io.Reader, error) {
	in, err := plainBytes(r, name, max)
	if err != nil {
		return nil, err
	}
	return &unpackedReader{in, name}, nil
}

// unpackedReader names the file in errors of its packing.
type unpackedReader struct {
	in   io.Reader
	name string
}

func (u *unpackedReader) Read(b []byte) (int, error) {
	n, err := u.in.Read(b)
	if _, damaged := errors.AsType[*packedError](err); damaged {
		err = fmt.Errorf("%s: %w", u.name, err)
	}
	return n, err
}

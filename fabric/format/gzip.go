package format

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// gzipMagic begins a file packed by gzip (RFC 1952, 2.3.1).
const gzipMagic = "\x1f\x8b"

// maxUnpacked is how long a file of rows may be once unpacked, in bytes. gzip packs up to
// 1,000 to one, so the size of the packed file bounds no time.
const maxUnpacked = 4 << 30

// unpacked is r, limited to max bytes, packed and unpacked, where it is a gzip file: dumps
// are often kept so. Text in UTF-16 becomes UTF-8. Damage is an error of the last read; the
// checksum is compared.
func unpacked(r io.Reader, name string, max int64) (io.Reader, error) {
	r, err := Bounded(r, name, max)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(len(gzipMagic)); string(magic) != gzipMagic { // the next read meets an error again
		return utf8Text(in, name), nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid gzip file: %w", name, err)
	}
	plain, err := Bounded(z, name, min(max, maxUnpacked))
	if err != nil {
		return nil, err
	}
	return utf8Text(bufio.NewReader(plain), name), nil
}

package apply

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strconv"
)

// DamageError reports a journal with a complete line that does not verify. An incomplete
// last line is not damage: its writer was killed.
type DamageError struct {
	Path string
	Line int
	Why  string
	// Copy is the copy of the journal beside it; "": there is no copy.
	Copy string
	// Last is the kind of the last record; "": that line does not verify either.
	Last RecordKind
}

func (e *DamageError) Error() string {
	text := fmt.Sprintf("journal %s line %d: %s; the file is unchanged", e.Path, e.Line, e.Why)
	if e.Copy != "" {
		text += ", and copied to " + e.Copy
	}
	if e.Line == 1 {
		return text + "; fabsh change revert --from-fabric PLAN reverts the change of the plan that was applied, and --abandon sets the journal aside"
	}
	return text + "; fabsh change status shows the blocks, fabsh change revert --from-fabric reverts them, and --abandon ends the change without a write"
}

// maxLine is the length of the longest line in bytes: all tables of 48k LIDs on 2,000
// switches.
const maxLine = 1 << 30

// castagnoli is the polynomial of the checksums, CRC32C (RFC 3720, section 12.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatLine returns line n of a journal: the number, the checksum of number and record,
// and the record.
func formatLine(n int, text []byte) []byte {
	number := strconv.Itoa(n) + " "
	sum := crc32.Update(crc32.Checksum([]byte(number), castagnoli), castagnoli, text)
	line := make([]byte, 0, len(number)+len(text)+10)
	return append(append(fmt.Appendf(append(line, number...), "%08x ", sum), text...), '\n')
}

// cutLine returns the number and the record of a line that verifies.
func cutLine(line []byte) (n int, text []byte, ok bool) {
	number, rest, _ := bytes.Cut(line, []byte{' '})
	_, text, ok = bytes.Cut(bytes.TrimSuffix(rest, []byte{'\n'}), []byte{' '})
	n, err := strconv.Atoi(string(number))
	return n, text, ok && err == nil && n > 0 && bytes.Equal(line, formatLine(n, text))
}

// reader reads the lines of a journal.
type reader struct {
	path string
	// size is the offset where the lines end that verify without a gap from the first;
	// next is the expected number of the line there.
	size int64
	next int
	// damage is the first line that does not verify; nil: all lines verify.
	damage *DamageError
	// last is the record of the last line, if that is complete and verifies.
	last []byte
	// sum is the digest of the lines of the older format, which end where the first line
	// of the current format begins: the SHA-256 of the previous digest and the record. A
	// line begins with 8 bytes of it in hexadecimal.
	sum   [sha256.Size]byte
	newer bool
}

// records returns the records of all lines that verify, including those behind the
// damage.
func (r *reader) records(f io.Reader) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		r.next = 1
		in := bufio.NewReaderSize(f, 1<<16)
		for at := 1; ; at++ {
			line, err := readLine(in)
			if err != nil {
				r.end(at, line, err)
				return
			}
			text, why := r.verify(line)
			r.last = text
			if why != "" {
				r.damaged(at, why)
				continue
			}
			if r.damage == nil {
				r.size += int64(len(line))
			}
			if !yield(text) {
				return
			}
		}
	}
}

// damaged notes the first damage.
func (r *reader) damaged(at int, why string) {
	if r.damage == nil {
		r.damage = &DamageError{Path: r.path, Line: at, Why: why}
	}
}

// verify returns the record of a line, or the reason that it does not verify.
func (r *reader) verify(line []byte) (text []byte, why string) {
	n, text, ok := cutLine(line)
	if !ok {
		if text, ok = r.verifyOlder(line); ok {
			r.next++
			return text, ""
		}
		return nil, "checksum does not match"
	}
	r.newer = true
	if n != r.next {
		if n > r.next && r.damage != nil { // lines are missing, which has been reported
			r.next = n + 1
			return text, ""
		}
		return nil, fmt.Sprintf("the line has number %d, want %d", n, r.next)
	}
	r.next++
	return text, ""
}

// verifyOlder is verify for a line of the older format.
func (r *reader) verifyOlder(line []byte) (text []byte, ok bool) {
	if r.newer || r.damage != nil {
		return nil, false
	}
	digest, text, ok := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
	sum := sha256.Sum256(append(r.sum[:len(r.sum):len(r.sum)], text...))
	if !ok || hex.EncodeToString(sum[:8]) != string(digest) {
		return nil, false
	}
	r.sum = sum
	return text, true
}

// end judges the bytes behind the last newline; err is the reason that no newline ends
// them. The first line of a journal is always complete: NewJournal renames the file
// afterwards.
func (r *reader) end(at int, tail []byte, err error) {
	switch {
	case !errors.Is(err, io.EOF):
		r.last = nil
		r.damaged(at, err.Error())
	case at == 1 && len(tail) == 0:
		r.damaged(at, "the file is empty")
	case at == 1:
		r.damaged(at, "the first line is incomplete")
	case len(tail) > 0:
		r.last = nil
		if _, _, whole := cutLine(append(bytes.Clone(tail[:len(tail)-1]), '\n')); whole { // the newline was changed to another byte
			r.damaged(at, "the line does not end with a newline")
		}
	}
}

// errLong reports a line that is longer than any record; errZero reports a line with zero
// bytes, which no record has, as in a file whose contents were lost.
var (
	errLong = fmt.Errorf("the line has more than %d bytes", maxLine)
	errZero = errors.New("the line has zero bytes")
)

// readLine reads a line. At the end of the file it returns what is left, and io.EOF. It
// ends at a zero byte in a long line, because a file whose contents were lost may have
// any length.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case bytes.IndexByte(part, 0) >= 0:
			return nil, errZero
		}
	}
}

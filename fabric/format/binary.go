package format

import "bytes"

// binaryFiles are files that are not text, by their first bytes (at: where they stand).
var binaryFiles = []struct {
	magic string
	at    int
	what  string
}{
	{"\x1f\x8b", 0, "packed by gzip twice; unpack it"},
	{"\xfd7zXZ\x00", 0, "packed by xz twice; unpack it"},
	{"\x28\xb5\x2f\xfd", 0, "packed by zstd twice; unpack it"},
	{"BZh", 0, "packed by bzip2 twice; unpack it"},
	{"PK\x03\x04", 0, "a zip archive, or an office document; unpack it, and name the file in it"},
	{"ustar", 257, "a tar archive; unpack it, and name the file in it"},
	{"7z\xbc\xaf\x27\x1c", 0, "a 7z archive; unpack it"},
	{"Rar!\x1a\x07", 0, "a rar archive; unpack it"},
	{"\x04\x22\x4d\x18", 0, "packed by lz4; unpack it with lz4 -d"},
	{"LZIP", 0, "packed by lzip; unpack it with lzip -d"},
	{"\x1f\x9d", 0, "packed by compress; unpack it with gzip -d"},
	{"\xd0\xcf\x11\xe0", 0, "an office document; save it as text"},
	{"%PDF-", 0, "a PDF document; save it as text"},
	{"\x7fELF", 0, "a program"},
	{"\x89PNG", 0, "a picture"},
	{"\xff\xd8\xff", 0, "a picture"},
	{"SQLite format 3\x00", 0, "a database of SQLite"},
}

// captureMagic are the first bytes of captures: pcap in both byte orders, and pcapng.
var captureMagic = []string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\x0a\x0d\x0d\x0a"}

// BinaryKind returns what a file with this beginning is, if that shows that it is an archive, packed
// in a way that is not read, a document or a program; "": it may be text, or anything else.
func BinaryKind(head []byte) string {
	for _, b := range binaryFiles {
		if len(head) >= b.at+len(b.magic) && string(head[b.at:b.at+len(b.magic)]) == b.magic {
			return b.what
		}
	}
	return ""
}

// notText names the kind of a file without text, by its beginning; "": it may be text.
func notText(head []byte) string {
	if what := BinaryKind(head); what != "" {
		return what
	}
	for _, magic := range captureMagic {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "a capture of packets; fabsh decode explains them, and -F replay: answers from a recording"
		}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		if zeros := bytes.Count(head, []byte{0}); zeros >= len(head)/3 {
			return "a binary file, or text in UTF-16 without a byte order mark"
		}
		return "a binary file, or damaged text: it has zero bytes"
	}
	return ""
}

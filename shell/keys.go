package shell

import (
	"os"
	"strings"
)

// keys is a terminal's input in the terms that readline knows.
type keys struct {
	*os.File
	rest  string // read, and not taken yet
	paste paste
}

// Of Home and End, readline knows neither those of screen, tmux and the Linux
// console nor those of rxvt. It takes Ctrl-C at a list of proposals, and in a
// search, for the end of only that; after Ctrl-G it is what it is elsewhere.
var keyNames = strings.NewReplacer(
	"\x1b[1~", "\x01", "\x1b[7~", "\x01",
	"\x1b[4~", "\x05", "\x1b[8~", "\x05",
	"\x03", "\x07\x03",
)

func (k *keys) Read(p []byte) (int, error) {
	for k.rest == "" {
		n, err := k.File.Read(p)
		if err != nil {
			return n, err
		}
		k.rest = k.paste.keys(string(p[:n]))
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

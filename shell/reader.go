package shell

import (
	"bufio"
	"io"
	"strings"
)

// plainReader reads lines from a pipe or a file, and never prompts.
type plainReader struct{ r *bufio.Reader }

func newPlainReader(r io.Reader) *plainReader { return &plainReader{bufio.NewReader(r)} }

func (p *plainReader) ReadLine(string) (string, error) {
	l, err := p.r.ReadString('\n')
	if err == io.EOF && l != "" {
		err = nil
	}
	return strings.TrimSuffix(l, "\n"), err
}

func (p *plainReader) Close() error { return nil }

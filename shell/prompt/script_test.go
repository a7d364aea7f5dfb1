package prompt

import (
	"io"
	"strings"
)

// script is somebody typing.
type script struct {
	lines []string
	echo  io.Writer
}

func (s *script) ReadLine(prompt string) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	l := s.lines[0]
	s.lines = s.lines[1:]
	if prompt != morePrompt {
		prompt = "> "
	}
	io.WriteString(s.echo, strings.TrimRight(prompt+l, " ")+"\n")
	return l, nil
}

func (s *script) Close() error { return nil }

package prompt

import (
	"io"
	"strings"
)

// typist is somebody typing.
type typist struct {
	lines []string
	echo  io.Writer
}

func (s *typist) ReadLine(prompt string) (string, error) {
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

func (s *typist) Close() error { return nil }

package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"fabsh/fabric/plural"
)

// maxPostamble is the largest number of lines after the tables of a file.
const maxPostamble = 64

// postamble reads a file of tables without the prompt at its end, and the lines below that. If
// a row follows, the tables are damaged: nothing is skipped.
type postamble struct {
	in   *bufio.Reader
	name string
	note func(text string)
	is   func(*fileFormat) bool // reports whether a format has such tables

	line    int    // read so far
	begun   bool   // the line that is being read began in an earlier part
	ready   []byte // to return
	held    []byte // the prompt, and what follows
	skipped strayLines
	err     error
}

// Read returns the file up to the prompt.
func (p *postamble) Read(b []byte) (int, error) {
	for len(p.ready) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.next()
	}
	n := copy(b, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// next reads a line, or a part of a long one, which is never a prompt.
func (p *postamble) next() {
	text, err := p.in.ReadSlice('\n')
	begun := p.begun
	if p.begun = errors.Is(err, bufio.ErrBufferFull); p.begun {
		err = nil
	}
	if !begun && len(text) > 0 {
		p.line++
	}
	line := bytes.TrimSpace(text)
	switch {
	case begun || p.begun:
		p.release(text)
	case p.skipped.n == 0 && !isPrompt(line):
		p.ready = text
	case p.skipped.n == maxPostamble || isRow(line) || beginning(text, p.is) != nil:
		p.release(text)
	default:
		p.held = append(p.held, text...)
		if len(line) > 0 {
			p.skipped.add(pos{p.name, p.line}, string(line))
		}
	}
	if p.err = err; errors.Is(err, io.EOF) && p.skipped.n > 0 {
		p.note(fmt.Sprintf("%s: skipped %s after the table, such as a prompt: %s", p.skipped.first, plural.Count(p.skipped.n, "line", "lines"), p.skipped.text))
	}
}

// release returns what was held, and text: there is no postamble so far.
func (p *postamble) release(text []byte) {
	if p.ready = text; len(p.held) > 0 {
		p.ready = append(p.held, text...)
	}
	p.held, p.skipped = nil, strayLines{}
}

// prompt matches prompts: `[root@node ~]# exit`, `root@node:~$`, `node-1>`, `sw-1 [standalone: master] >`.
var prompt = regexp.MustCompile(`^(\[?[A-Za-z_][\w.-]*@[\w.-]+[^\s#$%>]*( [^\s#$%>]*)?|[A-Za-z_][\w.-]*( ?[\[(][^\])]*[\])])?) ?[#$%>]( |$)`)

func isPrompt(line []byte) bool {
	if len(line) == 0 || line[0] != '[' && (line[0]|0x20 < 'a' || line[0]|0x20 > 'z') && line[0] != '_' {
		return false // as of nearly all lines
	}
	return prompt.Match(line) && !isRow(line)
}

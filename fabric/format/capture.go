package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Capture is a file of tables that may be a saved terminal session: a banner or a prompt before
// the first table, and a prompt after the last one, are skipped, and Note receives a sentence
// about each.
type Capture struct {
	io.Reader
	Note func(text string)
}

// preamble is the lines before the first table of a file.
type preamble struct {
	size, lines int // of the preamble; lines also counts comments and blank lines
	strayLines
	format *fileFormat // of the table; nil: there is no such preamble
}

// findPreamble returns what stands before the first table in the first lines of a file. is
// reports whether a format has such tables.
func findPreamble(head []byte, name string, is func(*fileFormat) bool) (p preamble) {
	for len(head) > 0 {
		if f := beginning(head, is); f != nil {
			p.format = f
			return p
		}
		end := bytes.IndexByte(head, '\n') + 1
		line := bytes.TrimSpace(head[:end])
		if end == 0 || isRow(line) {
			return preamble{}
		}
		if p.lines++; len(line) > 0 && line[0] != '#' {
			p.add(pos{name, p.lines}, string(line))
		}
		p.size += end
		head = head[end:]
	}
	return preamble{}
}

// beginning returns the format whose tables begin with the first line of text; nil: none.
func beginning(text []byte, is func(*fileFormat) bool) *fileFormat {
	const most = 8 // lines that are read
	var l headLine
	for raw := range bytes.Lines(text) {
		if l.set(raw); l.class == lineBlank {
			return nil
		}
		for _, f := range formats {
			if is(f) && f.takes(&l) {
				return f
			}
		}
		begins := l.class == lineNode || bytes.HasPrefix(l.text, fileVersion) || l.num > 1 && (l.class == lineComment || l.belowVersion)
		if !begins || l.num == most || !l.undecided() {
			return nil
		}
	}
	return nil
}

// rowParts are parts of lines of tables, whatever stands before them: a file that begins with
// such a line, but not with the first line of a table, has lost its beginning.
var rowParts = []string{"Unicast lids", " lids dumped", "dump_ucast_routes", "portguid 0x", "UNREACHABLE", "Definition:", "ports: in ", "mlids dumped"}

func isRow(line []byte) bool {
	return len(line) > 0 && (line[0] >= '0' && line[0] <= '9' || containsAny(string(line), rowParts) || containsAny(string(line), recordParts))
}

// skipPreamble skips the lines before the first table, and reports them to note. The reader that
// it returns has blank lines in their place, so that line numbers match the file.
func skipPreamble(in *bufio.Reader, name string, note func(string), is func(*fileFormat) bool) (io.Reader, *fileFormat) {
	var p preamble
	in = peekUntil(in, func(head []byte) bool {
		p = findPreamble(head, name, is)
		return p.format != nil
	})
	if p.n == 0 || p.format == nil {
		return in, nil
	}
	note(fmt.Sprintf("%s: skipped %s before the table, such as a banner or a prompt: %s", p.first, plural.Count(p.n, "line", "lines"), fabric.Clip(p.text)))
	in.Discard(p.size)
	return io.MultiReader(strings.NewReader(strings.Repeat("\n", p.lines)), in), p.format
}

// maxPostamble is the largest number of lines after the tables of a file.
const maxPostamble = 64

// postamble reads a file of tables without messages of tools, ends of code blocks, prompts, and
// the lines between a prompt and the next table or the end. If a row follows a prompt, the tables
// are damaged: nothing is skipped. Blank lines take the place of what is skipped, and messageMark
// that of a message, so that line numbers match the file.
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
	between strayLines // messages of tools, ends of code blocks, prompts
	err     error
}

// messageMark is a comment in place of a message of a tool.
const messageMark = "# message\n"

// isFence reports whether a line begins or ends a block of code in Markdown.
func isFence(line []byte) bool { return bytes.HasPrefix(line, []byte("```")) }

// isMessage reports whether a line is a message of a tool, and not a row with such a text.
func isMessage(line []byte) bool { return containsAny(string(line), toolMessages) && !isRow(line) }

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
	case p.skipped.n == 0 && (isMessage(line) || isFence(line)):
		p.between.add(pos{p.name, p.line}, string(line))
		if p.ready = []byte("\n"); isMessage(line) {
			p.ready = []byte(messageMark)
		}
	case p.skipped.n == 0 && !isPrompt(line):
		p.ready = text
	case p.skipped.n > 0 && p.begins(&text): // the prompt was between two tables
		if p.between.n == 0 {
			p.between = p.skipped
		} else {
			p.between.n += p.skipped.n
		}
		p.ready = append(bytes.Repeat([]byte("\n"), bytes.Count(p.held, []byte("\n"))), text...)
		p.held, p.skipped = nil, strayLines{}
	case p.skipped.n == maxPostamble || isRow(line):
		p.release(text)
	default:
		p.held = append(p.held, text...)
		if len(line) > 0 {
			p.skipped.add(pos{p.name, p.line}, string(line))
		}
	}
	if p.err = err; errors.Is(err, io.EOF) && p.between.n > 0 {
		p.note(fmt.Sprintf("%s: skipped %s among the tables, such as a message of the tool or a prompt: %s", p.between.first, plural.Count(p.between.n, "line", "lines"), p.between.text))
	}
	if errors.Is(err, io.EOF) && p.skipped.n > 0 {
		p.note(fmt.Sprintf("%s: skipped %s after the table, such as a prompt: %s", p.skipped.first, plural.Count(p.skipped.n, "line", "lines"), p.skipped.text))
	}
}

// begins reports whether the line begins a table, which the next lines may decide.
func (p *postamble) begins(line *[]byte) bool {
	*line = bytes.Clone(*line) // Peek changes the buffer
	next, _ := p.in.Peek(4096)
	return beginning(slices.Concat(*line, next), p.is) != nil
}

// release passes on what was held, and text: there is no postamble so far.
func (p *postamble) release(text []byte) {
	if p.ready = text; len(p.held) > 0 {
		p.ready = append(p.held, text...)
	}
	p.held, p.skipped = nil, strayLines{}
}

// prompt matches prompts: `[root@node ~]# exit`, `root@node:~$`, `node-1>`, `sw-1 [standalone: master] >`.
var prompt = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\[?[A-Za-z_][\w.-]*@[\w.-]+[^\s#$%>]*( [^\s#$%>]*)?|[A-Za-z_][\w.-]*( ?[\[(][^\])]*[\])])?) ?[#$%>]( |$)`)
})

func isPrompt(line []byte) bool {
	if len(line) == 0 || line[0] != '[' && (line[0]|0x20 < 'a' || line[0]|0x20 > 'z') && line[0] != '_' {
		return false // most lines
	}
	return prompt().Match(line) && !isRow(line)
}

// capture counts the lines of a saved terminal session that the dump in it does not have:
// a banner or prompt before, messages of tools between, a prompt after. Each is named in a
// problem of the fabric. A dump that goes on below any other line is damaged, and refused.
type capture struct {
	begun                  bool // a line of the dump has been read
	before, between, after strayLines
	held                   error // of the first line of after
}

// strayLines are lines that were skipped: how many, and the first.
type strayLines struct {
	n     int
	first pos
	text  string
}

func (s *strayLines) add(at pos, text string) {
	if s.n++; s.n == 1 {
		s.first, s.text = at, fabric.Clip(text)
	}
}

// toolMessages are parts of messages that tools print to the terminal while they dump
// (rdma-core libibmad, libibnetdisc and infiniband-diags: IBWARN, IBPANIC, IBND_ERROR).
var toolMessages = []string{
	"ibwarn: [", "ibpanic: [", "iberror:", "ibwarn:", "ibpanic:", "ibdebug: [", "src/query_smp.c:", "src/ibnetdisc.c:", "query_smp.c:", "ibnetdisc.c:", "timed out", "mad_rpc", "umad (DR path",
}

// recordParts are parts of lines that have a record of a node or a link, whatever stands before
// them: such a line is never skipped.
var recordParts = []string{`"S-`, `"H-`, `"R-`, "guid=", "vendid=", "devid=", "==(", " - SW ", " - CA ", " - RT ", " : 0x"}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// stray takes a line that the dump does not have. err is why; it is returned where the line
// may be a part of the dump that is damaged.
func (c *capture) stray(at pos, line string, err error) error {
	switch {
	case containsAny(line, recordParts):
		return err
	case containsAny(line, toolMessages) && c.held == nil:
		c.between.add(at, line)
	case strings.HasPrefix(line, "```"):
		c.before.add(at, line)
	case !c.begun:
		c.before.add(at, line)
	default:
		if c.held == nil {
			c.held = err
		}
		c.after.add(at, line)
	}
	return nil
}

// begin takes a line of the dump, which is an error below lines that would be after it.
func (c *capture) begin() error {
	c.begun = true
	return c.held
}

// problems returns problems that name what was skipped.
func (c *capture) problems() (list []fabric.Problem) {
	for _, s := range []struct {
		lines *strayLines
		kind  fabric.ProblemKind
		what  string
	}{
		{&c.before, fabric.ProblemLeftOut, "before the dump, such as a banner or a prompt"},
		{&c.between, fabric.ProblemTimedOut, "of messages of the tool; the dump lacks what timed out"},
		{&c.after, fabric.ProblemLeftOut, "after the dump, such as a prompt"},
	} {
		if s.lines.n > 0 {
			list = append(list, fabric.Problem{Kind: s.kind, Text: fmt.Sprintf("%s: skipped %s %s: %s", s.lines.first, plural.Count(s.lines.n, "line", "lines"), s.what, s.lines.text)})
		}
	}
	return list
}

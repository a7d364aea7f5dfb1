package format

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

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

// toolMessages are parts of what tools print to the same terminal while they dump
// (rdma-core libibmad, libibnetdisc and infiniband-diags: IBWARN, IBPANIC, IBND_ERROR).
var toolMessages = []string{
	"ibwarn: [", "ibpanic: [", "iberror:", "ibdebug: [", "src/query_smp.c:", "src/ibnetdisc.c:", "query_smp.c:", "ibnetdisc.c:", "timed out", "mad_rpc", "umad (DR path",
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

// problems name what was skipped.
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

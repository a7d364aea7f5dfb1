package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/builtins/help"
	"fabsh/builtins/topology"
	"fabsh/builtins/types"
	"fabsh/fabric"
)

// notText matches lines that are more likely a statement with an error than text that was
// copied from the screen.
var notText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`["{}=\\]|\w[(\[]|[^ ] *[-+*]$|\w:$|^(and|break|continue|def|elif|else|for|if|lambda|load|not|or|pass|return|while) |^\S+ [-+*/%] \S+$`)
})

// shown returns a hint for a line that fabsh shows in its output, such as the name of a
// port, and that is not a statement; sure: it is text of the fabric or of the specification.
func (r *repl) shown(line string) (hint string, sure bool) {
	if f := r.Env.Fabric(); f != nil {
		if hint := r.inFabric(f, line); hint != "" {
			return hint, true
		}
		if subject, _, ok := strings.Cut(line, ": "); ok { // of a finding
			if hint := r.inFabric(f, subject); hint != "" {
				return hint, true
			}
		}
	}
	switch {
	case line == "-":
		return "- stands for no value: None", true
	case strings.HasPrefix(line, "... not shown: "):
		return "this line names columns that do not fit; table(_, columns=[...]) chooses columns", true
	}
	if fields := fieldsWith(line); len(fields) > 0 {
		if len(fields) > 3 {
			fields = append(fields[:3:3], "others")
		}
		return fmt.Sprintf("%s is a value of %s; write it in quotes: %q", line, strings.Join(fields, ", "), line), true
	}
	if line == "" || notText().MatchString(line) {
		return "", false
	}
	if _, err := help.Of(r.Runtime).Find(line, 0); err == nil { // with a dot: a check of an audit, or a field
		return fmt.Sprintf("help %s explains it; as text, write it in quotes: %q", line, line), strings.Contains(line, ".")
	}
	if _, ok := types.AttributeTypes()[line]; ok {
		return fmt.Sprintf("%s is an attribute of records; write value.%[1]s", line), false
	}
	return fmt.Sprintf("if this is text, write it in quotes: %q", line), false
}

// inFabric returns the hint for the name or address of a node, a port or a link, or the names
// of two ports; "": it is another text.
func (r *repl) inFabric(f *fabric.Fabric, name string) string {
	if a, b, ok := strings.Cut(name, " - "); ok {
		switch from, to := portOf(f, a), portOf(f, b); {
		case from == nil || to == nil:
		case from.Peer() == to:
			return fmt.Sprintf("%s is a link; write %s.link", name, r.portExpr(f, from))
		default:
			return fmt.Sprintf("%s are ports; write %s and %s", name, r.portExpr(f, from), r.portExpr(f, to))
		}
	}
	if number, ok := strings.CutPrefix(name, "LID "); ok {
		return "write LIDs as numbers: " + number
	}
	t := topology.FindIn(f, name)
	if t.Err != nil {
		return ""
	}
	what, write := "a node", r.fabricName(f)+fmt.Sprintf(".node(%q)", name)
	switch {
	case t.Port != topology.NoPortGiven:
		what, write = "a port", r.portExpr(f, t.Node.Port(t.Port))
	case t.Node.IsSwitch():
		what = "a switch"
	}
	return fmt.Sprintf("%s is %s; write %s, or %q as a target", name, what, write, name)
}

// portOf returns the port of a name; nil: the fabric has none.
func portOf(f *fabric.Fabric, name string) *fabric.Port {
	if t := topology.FindIn(f, name); t.Err == nil && t.Port != topology.NoPortGiven {
		return t.Node.Port(t.Port)
	}
	return nil
}

// portExpr returns an expression for a port.
func (r *repl) portExpr(f *fabric.Fabric, p *fabric.Port) string {
	return fmt.Sprintf("%s.node(%q).ports[%d]", r.fabricName(f), p.Node().Name(), p.Num())
}

// fabricName returns an expression for a fabric: a variable of the user, if there is one.
func (r *repl) fabricName(f *fabric.Fabric) string {
	var names []string
	for name, v := range r.interp.globals {
		if known, ok := v.(*topology.Fabric); ok && known.Fabric == f && name != "_" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "discover()"
	}
	return slices.Min(names)
}

// fieldsWith returns the names of the attributes that can have a word, sorted.
func fieldsWith(word string) (names []string) {
	for name, w := range types.FieldWords() {
		if slices.Contains(w.Words, word) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

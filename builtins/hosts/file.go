package hosts

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/hosts"
)

// File is the content of a scheduler's file: hosts in order, each with the names of its
// groups, nearest first.
type File struct {
	hosts []string
	path  map[string][]string
}

// FileOf reads the result of the function read() of a script: a dict of host to a list or
// tuple of names.
func FileOf(v starlark.Value) (*File, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("read() returned %s; want a dict of host to the names of its groups", v.Type())
	}
	f := &File{path: map[string][]string{}}
	for _, kv := range d.Items() {
		host, ok := starlark.AsString(kv[0])
		it, isList := kv[1].(starlark.Iterable)
		if !ok || !isList {
			return nil, fmt.Errorf("read() returned a dict of %s to %s; want hosts, and the names of their groups", kv[0].Type(), kv[1].Type())
		}
		var path []string
		for _, x := range lang.Collect(it) {
			name, ok := starlark.AsString(x)
			if !ok {
				return nil, fmt.Errorf("read() returned %[2]s for %.60[1]q; want the names of its groups", host, x.Type())
			}
			path = append(path, name)
		}
		f.hosts = append(f.hosts, host)
		f.path[host] = path
	}
	return f, nil
}

// Check compares a file with the groups that it was made from. It returns nil if the file has
// exactly their hosts, and each of its groups has the hosts of one of theirs.
func (f *File) Check(g *hosts.Groups) error {
	own := map[string][]*hosts.Group{} // by host, nearest first
	var visit func(list, above []*hosts.Group)
	visit = func(list, above []*hosts.Group) {
		for _, x := range list {
			in := append([]*hosts.Group{x}, above...)
			visit(x.Groups, in)
			if x.Level == 0 {
				for _, host := range x.Hosts {
					own[host] = in
				}
			}
		}
	}
	visit(g.Roots, nil)
	var missing []string
	for host := range own {
		if _, ok := f.path[host]; !ok {
			missing = append(missing, host)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d of %d hosts are missing: %.200s", len(missing), len(own), hosts.Fold(missing))
	}
	size := map[string]int{}
	for _, path := range f.path {
		for _, name := range path {
			size[name]++
		}
	}
	as := map[string]*hosts.Group{}
	for _, host := range f.hosts {
		in := own[host]
		if in == nil {
			return fmt.Errorf("unknown host %.60q", host)
		}
		for _, name := range f.path[host] {
			i := slices.IndexFunc(in, func(x *hosts.Group) bool {
				return len(x.Hosts) == size[name] && (as[name] == nil || as[name] == x)
			})
			if i < 0 {
				return fmt.Errorf("host %.60q: unknown group %.60q of %d hosts", host, name, size[name])
			}
			as[name] = in[i]
		}
	}
	return nil
}

// DiffType is the type of the result of fabsh topology --diff.
var DiffType = &lang.ResultType{
	Name: "topology_diff",
	Doc:  "The differences between a scheduler's file and the fabric.",
	Members: []lang.ResultMember{
		{Name: "same", Doc: "True if nothing differs"},
		{Name: "changes", Type: "list of topology_change", Doc: "hosts that moved, are new, or are gone"},
		{Name: "reordered", Doc: "True for the same hosts in another order"},
	},
}

// ChangeType is the type of a change.
var ChangeType = &lang.ResultType{
	Name: "topology_change",
	Doc:  "Hosts whose groups differ between a scheduler's file and the fabric.",
	Members: []lang.ResultMember{
		{Name: "hosts", Doc: "names in Slurm's notation"},
		{Name: "old", Doc: "names of their groups in the file, nearest first, separated by /; None if the file does not have them"},
		{Name: "new", Doc: "the same for the fabric; None if it does not have them"},
	},
}

// Diff is the difference between two files.
type Diff struct {
	*lang.Result
	Same bool
	text string
}

// Display returns the changes as text, one line for all hosts with the same change.
func (d *Diff) Display() string { return d.text }

// DiffOf compares a file with the one in use.
func DiffOf(old, now *File) *Diff {
	type move struct{ old, new string }
	const absent = "\x00"
	where := func(f *File, host string) string {
		if path, ok := f.path[host]; ok {
			return strings.Join(path, "/")
		}
		return absent
	}
	var order []move
	moved := map[move][]string{}
	for _, f := range []*File{old, now} {
		for _, host := range f.hosts {
			m := move{where(old, host), where(now, host)}
			if m.old == m.new || f == now && m.old != absent {
				continue
			}
			if moved[m] == nil {
				order = append(order, m)
			}
			moved[m] = append(moved[m], host)
		}
	}
	var text strings.Builder
	var changes []starlark.Value
	value := func(path string) starlark.Value { return lang.OrNone(path != absent, starlark.String(path)) }
	for _, m := range order {
		list := hosts.Fold(moved[m])
		sign, in := "~", m.old+" -> "+m.new
		switch {
		case m.old == absent:
			sign, in = "+", m.new
		case m.new == absent:
			sign, in = "-", m.old
		}
		if in != "" { // a hostfile has no groups
			in = ": " + in
		}
		text.WriteString(lang.OneLine(sign+" "+list+in) + "\n")
		changes = append(changes, lang.NewResult(ChangeType, starlark.String(list), value(m.old), value(m.new)))
	}
	reordered := len(order) == 0 && !slices.Equal(old.hosts, now.hosts)
	if reordered {
		text.WriteString("the same hosts, in another order\n")
	}
	same := len(order) == 0 && !reordered
	if same {
		text.WriteString("nothing differs\n")
	}
	return &Diff{lang.NewResult(DiffType, starlark.Bool(same), starlark.NewList(changes), starlark.Bool(reordered)), same, text.String()}
}

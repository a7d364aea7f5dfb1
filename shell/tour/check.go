package tour

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	values "fabsh/builtins/routing"
	"fabsh/fabric/routing/routes"
)

// errNotYet reports that the statement does something else.
var errNotYet = errors.New("not yet")

// partError reports that the statement does a part of the step, and what is left.
type partError struct{ left string }

func (e *partError) Error() string { return e.left }

// when is nil for a step that is done.
func when(done bool) error {
	if done {
		return nil
	}
	return errNotYet
}

// some reports whether check holds for a result, or for one element of a result that is
// a list.
func (s Seen) some(like func(starlark.Value) bool) bool {
	var in func(v starlark.Value, depth int) bool
	in = func(v starlark.Value, depth int) bool {
		if like(v) {
			return true
		}
		if list, ok := v.(starlark.Sequence); ok && depth < 3 && (v.Type() == "list" || v.Type() == "tuple") {
			for e := range starlark.Elements(list) {
				if in(e, depth+1) {
					return true
				}
			}
		}
		if d, ok := v.(*starlark.Dict); ok && depth < 3 {
			return slices.ContainsFunc(d.Items(), func(kv starlark.Tuple) bool { return in(kv[1], depth+1) })
		}
		return false
	}
	return slices.ContainsFunc(s.Values, func(v starlark.Value) bool { return in(v, 0) })
}

// attr returns an attribute of a value; nil if it has none of that name.
func attr(v starlark.Value, name string) starlark.Value {
	if h, ok := v.(starlark.HasAttrs); ok {
		if a, err := h.Attr(name); err == nil {
			return a
		}
	}
	return nil
}

// says reports whether any of words is in the statement, and the statement did not
// fail.
func (s Seen) says(words ...string) bool {
	return !s.Failed && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s.Text, w) })
}

func hasFabric(t *Tour, s Seen) error {
	return when(s.some(func(v starlark.Value) bool { return v.Type() == "fabric" }) || s.says("discover()"))
}

// asksNodeInfo accepts any target. A field of the answer that is read at once is an
// answer, too.
func asksNodeInfo(t *Tour, s Seen) error {
	f, err := t.node(badSwitch)
	if err != nil {
		return err
	}
	mine := s.some(func(v starlark.Value) bool {
		return v.Type() == "node_info" && attr(v, "node_guid") == starlark.String(f)
	})
	if !mine && s.some(func(v starlark.Value) bool { return v.Type() == "node_info" }) {
		return &partError{"That is the NodeInfo of another node; leaf-2 is needed."}
	}
	return when(mine || s.says("smp_get(") && s.says("NodeInfo") && s.says(`"leaf-2"`, `'leaf-2'`, ", 2)"))
}

// node is the GUID of a switch.
func (t *Tour) node(name string) (guid string, err error) {
	r, err := t.prompt.Tables()
	if err != nil {
		return "", err
	}
	for _, n := range r.Graph().Switches() {
		if n.Name() == name {
			return n.GUID().String(), nil
		}
	}
	return "", errNotYet
}

func readsTable(t *Tour, s Seen) error {
	return when(s.some(func(v starlark.Value) bool {
		switch v.Type() {
		case "lft", "row":
			return leadsBy(v)
		case "path":
			return true
		}
		return isBadPort(v) && s.says("get_lft", "get_routes", "LinearForwardingTable")
	}))
}

// leadsBy reports whether a table forwards to lid by badPort.
func leadsBy(table starlark.Value) bool {
	m, ok := table.(starlark.Mapping)
	if !ok {
		return false
	}
	port, found, err := m.Get(starlark.MakeInt(lid))
	return err == nil && found && isBadPort(port)
}

func isBadPort(v starlark.Value) bool {
	n, err := starlark.AsInt32(v)
	return err == nil && n == badPort
}

func readsCounters(t *Tour, s Seen) error {
	return when(s.some(func(v starlark.Value) bool {
		return v.Type() == "port_rates" || strings.HasPrefix(v.Type(), "port_counters")
	}) || s.says("symbol_error_counter", "ibqueryerrors"))
}

func finds(t *Tour, s Seen) error {
	if s.Report == nil {
		return errNotYet
	}
	if len(s.Report.Findings) == 0 {
		return &partError{"That audit finds nothing here. Which one reads counters? Without names all run: audit"}
	}
	return nil
}

// avoids reports whether tables route nothing over the bad link.
func avoids(r *routes.Routes) bool {
	for i, n := range r.Graph().Switches() {
		for _, end := range []struct {
			name string
			port uint8
		}{{badSwitch, badPort}, {peerSwitch, peerPort}} {
			if n.Name() == end.name && slices.Contains(r.Row(i), end.port) {
				return false
			}
		}
	}
	return true
}

// verifies reports on tables that leave the link out, and on their verdict.
func verifies(t *Tour, s Seen) error {
	avoiding := func(v starlark.Value) bool {
		r, ok := v.(*values.Routes)
		return ok && avoids(r.Tables)
	}
	isVerdict := func(v starlark.Value) bool { return v.Type() == "verdict" }
	judged := s.some(isVerdict) || s.says(".verify()")
	sound := s.some(func(v starlark.Value) bool {
		return isVerdict(v) && attr(v, "ok") == starlark.True || v == starlark.True && s.says(".verify()")
	})
	kept := slices.ContainsFunc(slices.Collect(maps.Values(t.prompt.Globals())), avoiding)
	switch {
	case sound && (kept || s.says("exclude")):
		return nil
	case sound:
		return &partError{"These tables are valid, but they still route packets over the bad link: leave it out with f.graph(exclude=[...])."}
	case judged:
		return &partError{"Good that you checked: these tables must not be used. Try another engine: \"updn\" or \"ftree\"."}
	case kept:
		return &partError{"These tables route nothing over that link. Now verify them: t.verify()"}
	case s.some(avoiding):
		return &partError{"These tables route nothing over that link. Give them a name, t = ..., and verify them: t.verify()"}
	}
	return errNotYet
}

func applies(t *Tour, s Seen) error {
	live, err := t.prompt.Tables()
	if err != nil {
		return err
	}
	switch {
	case avoids(live):
		return nil
	case s.some(func(v starlark.Value) bool { return v.Type() == "plan" && attr(v, "ok") == starlark.True }):
		return &partError{"The plan is proven. Read it, then apply it: p.apply()"}
	case s.some(func(v starlark.Value) bool { return v.Type() == "plan" }):
		return &partError{"This plan is refused, with the reason above. t.plan(get_routes()) is a better one."}
	}
	return errNotYet
}

func reports(t *Tour, s Seen) error { return when(s.Named != "" && !s.Failed) }

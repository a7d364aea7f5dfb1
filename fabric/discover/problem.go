package discover

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// failure is a request without a useful answer.
type failure struct {
	node *found
	attr *mad.Attribute
	port int
	err  error
}

func (f *findings) fail(r *request, a *mad.Attribute) {
	f.failures = append(f.failures, failure{r.node, a, r.port, r.Err})
}

// note is a problem found during the sweep. Its text is made at the end, when
// all names and routes are known.
type note struct {
	kind fabric.ProblemKind
	text func() string
}

func (f *findings) note(k fabric.ProblemKind, text func() string) {
	f.notes = append(f.notes, note{k, text})
}

// text is f.err as it would have been on the node's final route.
func (f *failure) text() string {
	e, ok := errors.AsType[*engine.Error](f.err)
	if !ok {
		return f.err.Error()
	}
	x := *e
	route := f.node.route
	if f.attr == mad.AttrNodeInfo {
		route = f.node.behind(f.port)
	}
	x.Dest = "route " + route.String()
	return x.Error()
}

// changed reports that the cabling changed during the sweep.
func (f *findings) changed(n *found, port int, how func() string) {
	f.note(fabric.ProblemChanged, func() string {
		return fmt.Sprintf("port %d of %s changed during the sweep: %s; discover again", port, n.label(), how())
	})
}

// report makes problems of what went wrong: ended is why the sweep was not done, and
// keyAdvice how to ask nodes with an M_Key, if that may help.
func (f *findings) report(b *fabric.Builder, ended error, keyAdvice string) {
	add := func(k fabric.ProblemKind, format string, args ...any) {
		b.AddProblem(fabric.Problem{Kind: k, Text: fmt.Sprintf(format, args...)})
	}
	for _, n := range f.notes {
		add(n.kind, "%s", n.text())
	}
	switch ended {
	case nil:
	case errTooMany:
		add(fabric.ProblemCut, "%s", f.tooManyText())
	default:
		add(fabric.ProblemCut, "the sweep ended early: %v; discover again", ended)
	}
	f.reportFailures(b, keyAdvice)
	for _, n := range f.nodes {
		for i, p := range n.ports {
			if n.isSwitch() && p.view == viewSomething && p.known && p.peer == nil && n.route.Hops() == mad.MaxHops {
				add(fabric.ProblemTooFar, "the node behind port %d of %s is more than %d hops away; start from a nearer node", i, n.label(), mad.MaxHops)
			}
		}
	}
}

// reportFailures makes problems of failures, one for all ports of a node. What
// another request answered in the end is left out.
func (all *findings) reportFailures(b *fabric.Builder, keyAdvice string) {
	type key struct {
		node *found
		attr *mad.Attribute
		kind fabric.ProblemKind
	}
	groups := map[key][]failure{}
	for _, f := range all.failures {
		p := &f.node.ports[f.port]
		if f.attr == mad.AttrPortInfo && p.known || f.attr == mad.AttrNodeInfo && p.peer != nil {
			continue
		}
		k := key{f.node, f.attr, fabric.ProblemFailed}
		if errors.Is(f.err, engine.ErrTimeout) {
			k.kind = fabric.ProblemTimedOut
		}
		groups[k] = append(groups[k], f)
	}
	for k, fs := range groups {
		add := func(kind fabric.ProblemKind, format string, args ...any) {
			b.AddProblem(fabric.Problem{Kind: kind, Text: fmt.Sprintf(format, args...), Attribute: k.attr.Name})
		}
		slices.SortFunc(fs, func(a, b failure) int { return cmp.Compare(a.port, b.port) })
		ports := make([]string, len(fs))
		for i, f := range fs {
			ports[i] = strconv.Itoa(f.port)
		}
		what := "port " + ports[0]
		if len(ports) > 1 {
			what = "ports " + strings.Join(ports, ", ")
		}
		switch {
		case k.attr == mad.AttrNodeInfo && keyAdvice != "":
			add(k.kind, "%s of %s: the node at the other end is unknown: %s; the link is up, so check that node and the cable; or that node requires %s", what, k.node.label(), fs[0].text(), keyAdvice)
		case k.attr == mad.AttrNodeInfo:
			for _, f := range fs {
				add(k.kind, "port %d of %s: the node at the other end is unknown: %s; the link is up, so check that node and the cable", f.port, k.node.label(), f.text())
			}
		case k.attr != mad.AttrPortInfo:
			add(k.kind, "%s of %s is unknown: %s; check the node's management agent", k.attr.Name, k.node.label(), fs[0].text())
		case k.node.isSwitch() && fs[0].port == 0:
			add(k.kind, "PortInfo of %s is unknown: %s; its other ports were not read; check the node's management agent", k.node.label(), fs[0].text())
		default:
			add(k.kind, "PortInfo of %s of %s is unknown: %s; check the node's management agent", what, k.node.label(), fs[0].text())
		}
	}
}

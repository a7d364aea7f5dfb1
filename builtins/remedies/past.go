package remedies

import (
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/remedy"
)

// PastType is the type of a remedy's parameter past.
var PastType = &lang.ResultType{
	Name: "remedy_past",
	Doc:  "What earlier runs decided, for remedies: def remedy(fabric, findings, *, past=None).",
	Members: []lang.ResultMember{
		{Name: "known", Doc: "links with a past: a list of remedy_link"},
		{Name: "runs", Type: "int", Doc: "how many earlier runs are known, at most 32"},
		{Name: "judged", Doc: "the checks of audits that were done in this run; empty with --last"},
	},
}

// LinkType is the type of the past of a link.
var LinkType = &lang.ResultType{
	Name: "remedy_link",
	Doc:  "The past of a link that a remedy wanted to isolate.",
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "GUID and number of the port where it is disabled"},
		{Name: "name", Type: "string", Doc: "name of the link when it was last up"},
		{Name: "port", Doc: "the port where it is disabled; None if it is not in the fabric"},
		{Name: "other", Doc: "the port at the other end; None if it is not in the fabric"},
		{Name: "phase", Doc: `"isolated", "testing" (enabled for a test), "planned" (to be isolated, within the last day), "restoring" (to be enabled, within the last day), or None`},
		{Name: "seconds", Doc: "how long it has been in this phase; None without a phase"},
		{Name: "bad", Doc: "the earlier runs that proposed to isolate it: 0 is the latest"},
		{Name: "declined", Doc: "the rule for all remedies that last declined to isolate it; None if none has since it was planned"},
		{Name: "times", Type: "int", Doc: "how often it was isolated"},
		{Name: "since_isolated", Doc: "seconds since it was last isolated; None if it was not"},
		{Name: "since_restored", Doc: "seconds since it last passed its test; None if it did not"},
	},
}

// Past is what earlier runs decided.
type Past struct {
	Fabric *fabric.Fabric
	State  *remedy.State
	Of     time.Time // of the findings of this run
	Judged []string  // the checks that were done in this run
}

// pastOf returns p as a value for remedies.
func pastOf(input *Past, now time.Time) starlark.Value {
	s := input.State
	runs := slices.DeleteFunc(slices.Clone(s.Runs), func(t time.Time) bool { return t.Equal(input.Of) }) // this one
	slices.Reverse(runs)
	links := lang.List(s.Ports, func(p *remedy.Past) starlark.Value {
		var bad []starlark.Value
		for i, t := range runs {
			if slices.ContainsFunc(p.Bad, t.Equal) {
				bad = append(bad, starlark.MakeInt(i))
			}
		}
		phase, at := phaseOf(p, input.Fabric, now)
		return lang.NewResult(LinkType, starlark.String(p.Port.String()), starlark.String(p.Name), portValue(p.Port, input.Fabric), portValue(p.Peer, input.Fabric),
			lang.TextOrNone(phase), since(at, now), starlark.NewList(bad), lang.TextOrNone(p.Declined), starlark.MakeInt(p.Times), since(p.Last, now), since(p.Restored, now))
	})
	return lang.NewResult(PastType, links, starlark.MakeInt(len(runs)), lang.Texts(input.Judged))
}

// phaseOf returns the phase of a link, and since when it is in it.
func phaseOf(p *remedy.Past, f *fabric.Fabric, now time.Time) (phase string, at time.Time) {
	switch {
	case remedy.Pending(p.Restoring, now):
		return "restoring", p.Restoring
	case !p.Isolated.IsZero():
		return "isolated", p.Isolated
	case remedy.Pending(p.Planned, now):
		return "planned", p.Planned
	case !p.Testing.IsZero():
		return "testing", p.Testing
	}
	return "", time.Time{}
}

func portValue(p remedy.Place, f *fabric.Fabric) starlark.Value {
	if port := p.In(f); port != nil {
		return topology.PortOf(port)
	}
	return starlark.None
}

// since returns the seconds from a time until now, None for no time.
func since(t, now time.Time) starlark.Value {
	if t.IsZero() {
		return starlark.None
	}
	return starlark.Float(max(0, now.Sub(t).Seconds()))
}

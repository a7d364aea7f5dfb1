package datagrams

import (
	"fmt"
	"reflect"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// statistics is the value `stats`, the statistics of an engine.
type statistics struct{ engine.Stats }

var (
	_ starlark.HasAttrs = statistics{}
	_ lang.Factual      = statistics{}
)

// Stats is stats(), which returns the statistics of the engine.
var Stats = lang.Builtin{
	Name:  "stats",
	Group: lang.GroupRest,
	Doc: `Returns statistics of this session: MADs sent and received, the limits of MADs in flight, and round-trip times.
"smp", "sa" and "gmp" are subnet management, subnet administration, and performance management with all other classes. Each has the window, the limit of MADs in flight, which follows the round-trip times, and the median, 90 % and 99 % quantiles of the round-trip times, in microseconds (at most a quarter too high). "foreign" counts ignored datagrams: answers from another sender than the target, or for another port or block, and Reports and traps from others than the subnet administrator or the issuer.
Counts and times are never part of other values, which are the same in every run.`,
	Example: `
> stats().timed_out
0
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		e, err := topology.EngineOf(c)
		if err != nil {
			return nil, err
		}
		return statistics{e.Stats()}, nil
	}),
}

func (s statistics) String() string {
	return fmt.Sprintf("stats(sent=%d, answered=%d, timed_out=%d)", s.Sent, s.Answered, s.TimedOut)
}
func (s statistics) Type() string          { return "stats" }
func (s statistics) Freeze()               {}
func (s statistics) Truth() starlark.Bool  { return true }
func (s statistics) Hash() (uint32, error) { return topology.HashUint64(s.Sent), nil }
func (s statistics) Schema() string        { return "stats/1" }

// Facts returns the fields of mad.Counts with their names in snake case, and those of
// each class.
func (s statistics) Facts() []lang.Fact {
	v := reflect.ValueOf(s.Counts)
	var out []lang.Fact
	for i := range v.NumField() {
		out = append(out, lang.Fact{Name: mad.SnakeName(v.Type().Field(i).Name), Value: starlark.MakeUint64(v.Field(i).Uint())})
	}
	for _, class := range []struct {
		name string
		engine.ClassStats
	}{{"smp", s.SMP}, {"sa", s.SA}, {"gmp", s.GMP}} {
		out = append(out,
			lang.Fact{Name: class.name + "_window", Value: starlark.MakeInt(class.Window)},
			lang.Fact{Name: class.name + "_round_trips", Value: starlark.MakeUint64(class.RoundTrips)},
			lang.Fact{Name: class.name + "_p50_us", Value: starlark.MakeInt64(class.P50.Microseconds())},
			lang.Fact{Name: class.name + "_p90_us", Value: starlark.MakeInt64(class.P90.Microseconds())},
			lang.Fact{Name: class.name + "_p99_us", Value: starlark.MakeInt64(class.P99.Microseconds())},
			lang.Fact{Name: class.name + "_max_us", Value: starlark.MakeInt64(class.Max.Microseconds())})
	}
	return out
}

// StatsDoc describes the value stats; help(stats) explains its names.
func StatsDoc() lang.TypeDoc {
	d := lang.TypeDoc{Name: "stats", Schema: statistics{}.Schema(), Doc: "Statistics of the engine; help(stats) explains the numbers. Times are in microseconds."}
	for _, f := range (statistics{}).Facts() {
		d.Members = append(d.Members, lang.MemberDoc{Name: f.Name, Column: true, Doc: strings.ReplaceAll(f.Name, "_", " ")})
	}
	return d
}

// Attr returns a fact by name.
func (s statistics) Attr(name string) (starlark.Value, error) {
	for _, f := range s.Facts() {
		if f.Name == name {
			return f.Value, nil
		}
	}
	return nil, nil
}

func (s statistics) AttrNames() []string { return lang.ColumnsOf([][]lang.Fact{s.Facts()}) }

package command

import (
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/trial"
	"fabsh/shell/session"
)

// showTrial shows the report of a trial: as text, as one value in JSON, otherwise the results
// as rows.
func showTrial(s *session.Session, r *trial.Report) error {
	switch s.Format {
	case lang.FormatText:
		s.Print(r.String())
		return nil
	case lang.FormatJSON:
		return s.Show(trialValue(r))
	}
	return s.Show(starlark.NewList(trialRows(r)))
}

// facts is a part of a report, as a value to encode.
type facts struct {
	schema string
	list   []lang.Fact
}

var _ lang.Factual = (*facts)(nil)

func (v *facts) Type() string          { return "trial" }
func (v *facts) Freeze()               {}
func (v *facts) Truth() starlark.Bool  { return true }
func (v *facts) Hash() (uint32, error) { return 0, lang.Errorf("unhashable: trial") }
func (v *facts) Schema() string        { return v.schema }
func (v *facts) String() string        { return v.schema }
func (v *facts) Facts() []lang.Fact    { return v.list }

// with adds a fact.
func (v *facts) with(name string, value starlark.Value) *facts {
	v.list = append(v.list, lang.Fact{Name: name, Value: value})
	return v
}

func (v *facts) text(name, s string) *facts { return v.with(name, starlark.String(s)) }
func (v *facts) number(name string, n int) *facts {
	return v.with(name, starlark.MakeInt(n))
}

// listOf returns a list of values.
func listOf[T any](list []T, value func(T) starlark.Value) starlark.Value {
	values := make([]starlark.Value, len(list))
	for i, x := range list {
		values[i] = value(x)
	}
	return starlark.NewList(values)
}

func text(s string) starlark.Value { return starlark.String(s) }

// trialValue returns the whole report.
func trialValue(r *trial.Report) starlark.Value {
	v := &facts{schema: "trial/1"}
	v.number("nodes", r.Nodes).number("sweep_problems", r.SweepProblems).with("sweep_complete", starlark.Bool(!r.SweepEnded))
	counts := &facts{schema: "trial_counts/1"}
	for o, word := range trial.Outcomes() {
		counts.number(word, r.Count(trial.Outcome(o)))
	}
	v.with("requests", counts)
	v.with("models", listOf(r.Models, func(m *trial.Model) starlark.Value {
		model := &facts{schema: "trial_model/1"}
		return model.text("type", m.Type.String()).number("vendor_id", int(m.Vendor)).number("device_id", int(m.DeviceID)).number("found", m.Found).
			with("devices", listOf(m.Devices, func(d *trial.Device) starlark.Value {
				device := (&facts{schema: "trial_device/1"}).text("device", d.Name)
				if d.Unread == "" {
					device.with("unread", starlark.None)
				} else {
					device.text("unread", d.Unread)
				}
				return device.with("requests", listOf(d.Results, func(x *trial.Result) starlark.Value { return trialRow("", x) }))
			}))
	}))
	v.with("records", listOf(r.Records, func(x *trial.Result) starlark.Value { return trialRow("", x) }))
	traps := &facts{schema: "trial_events/1"}
	traps.text("outcome", r.Events.Outcome.String()).text("detail", r.Events.Detail).with("seconds", starlark.Float(r.Events.Duration.Seconds()))
	traps.with("traps", listOf(slices.Sorted(maps.Keys(r.Events.Traps)), func(number uint16) starlark.Value {
		return (&facts{schema: "trial_trap/1"}).number("number", int(number)).number("count", r.Events.Traps[number])
	}))
	v.with("events", traps)
	v.with("comparisons", listOf(r.Comparisons, trialComparison)).with("host_comparisons", listOf(r.Host, trialComparison))
	return v
}

func trialComparison(c *trial.Comparison) starlark.Value {
	return (&facts{schema: "trial_comparison/1"}).text("device", c.Device).text("source", c.Source).text("attribute", c.Attribute).text("place", c.Place).
		with("agreed", listOf(c.Agreed, text)).
		with("differed", listOf(c.Differed, func(d trial.Difference) starlark.Value {
			return (&facts{schema: "trial_difference/1"}).text("field", d.Field).text("here", d.Here).text("there", d.There)
		})).
		with("not_compared", listOf(c.NotCompared, text))
}

// trialRow returns a result; of a device that has a name.
func trialRow(device string, x *trial.Result) starlark.Value {
	v := &facts{schema: "trial_request/1"}
	if device != "" {
		v.text("device", device)
	}
	return v.text("class", x.Class).text("attribute", x.Attribute).text("place", x.Place).text("outcome", x.Outcome.String()).text("detail", x.Detail)
}

// trialRows returns all results as rows.
func trialRows(r *trial.Report) (list []starlark.Value) {
	for _, m := range r.Models {
		for _, d := range m.Devices {
			for _, x := range d.Results {
				list = append(list, trialRow(d.Name, x))
			}
		}
	}
	for _, x := range r.Records {
		list = append(list, trialRow("subnet administrator", x))
	}
	return list
}

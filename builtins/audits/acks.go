package audits

import (
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// AckType is the type of an acknowledgement in a list.
var AckType = &lang.ResultType{
	Name: "audit_ack",
	Doc:  "An acknowledgement of findings, as fabsh audit ack list shows it.",
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "ids of the findings; * is any text"},
		{Name: "subject", Doc: "name of the subject when it was acknowledged; None if unknown"},
		{Name: "holds", Type: "bool", Doc: "True until the end of the last day"},
		{Name: "until", Type: "string", Doc: "the last day"},
		{Name: "by", Type: "string", Doc: "who acknowledged it"},
		{Name: "reason", Type: "string", Doc: "why"},
		{Name: "count", Doc: "how much there was of the fault: errors per hour, or the number of findings; None if unknown, until a run of a job finds it. Ten times as much is reported again"},
	},
}

// WrapAcks returns acks as a list of AckType.
func WrapAcks(acks audit.Acks, now time.Time) *starlark.List {
	return lang.List(acks, func(a audit.Ack) starlark.Value {
		return lang.NewResult(AckType, starlark.String(a.Pattern), lang.TextOrNone(a.Name), starlark.Bool(a.InForce(now)),
			starlark.String(a.Until.Format(time.DateOnly)), starlark.String(a.By), starlark.String(a.Reason), lang.OrNone(a.Count > 0, starlark.Float(a.Count)))
	})
}

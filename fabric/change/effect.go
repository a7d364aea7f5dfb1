// Package effect predicts the effect of taking links down, before they are taken down.
//
//	effect.go    Effect: the result; why a change with it must not be made; as text
//	predictor.go Predictor: what the tables are like without links
//	baseline.go  Baseline: paths, with which later tables are compared
//	engine.go    which engine the tables in force resemble
//	connected.go nodes that lose their last path, whatever the tables

package change

import (
	"context"
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// PredictOptions control a prediction.
type PredictOptions struct {
	// Managed reports that a subnet manager makes new tables when links go down; else the
	// tables stay.
	Managed bool
	// Engine is the engine of the subnet manager; "": the one whose tables those in force
	// resemble, if any.
	Engine string
	// Needed are LIDs whose ports must keep their links: those of the subnet manager and of
	// this host.
	Needed []mad.LID
	// Lanes is called only where the tables have a credit loop on one lane. Nil: unknown.
	Lanes AddLanes
}

// Effect is a prediction: what links that go down do to the paths between the ports of
// CAs and routers. Pairs are those of such a port and a LID of another one.
type Effect struct {
	Links []string // that go down: "leaf-2/7 - spine-1/2"
	// Managed is that of Options. Without a subnet manager nothing is rerouted, and Through
	// is Lost.
	Managed bool
	// Engine computes the predicted tables; "": the tables in force are repaired. Basis is
	// the reason for this, in words.
	Engine, Basis string
	// Through are pairs whose packets take the links: they lose packets until new tables are
	// written.
	Through int64
	// Lost are pairs that have a path now, and none by the predicted tables. Rerouted are
	// those that then take another path.
	Lost, Rerouted int64
	// LoadBefore and LoadAfter are the largest numbers of pairs on a link.
	LoadBefore, LoadAfter int64
	// Split names two nodes that lose their last path to each other, whatever the tables;
	// LastPath a CA or router whose last link goes down; Needed a port that the subnet
	// manager or this host needs. "": none does.
	Split, LastPath, Needed string
	// CreditLoop describes a credit loop of the predicted tables; "": they have none.
	// LoopBefore reports that the tables in force have one.
	CreditLoop string
	LoopBefore bool
	Notes      []string // what was not judged
}

// PredictEffect predicts the effect of taking down the links of ports, either end of each. live are
// the tables in force.
func PredictEffect(ctx context.Context, live *routes.Routes, down []*fabric.Port, o PredictOptions) (*Effect, error) {
	p, err := NewPredictor(ctx, live, o)
	if err != nil {
		return nil, err
	}
	return p.Without(ctx, down)
}

// Refusal returns the reason why the links must not be taken down where that can be
// avoided; "": they may.
func (e *Effect) Refusal() string {
	switch {
	case e.Needed != "":
		return "the subnet manager or this host needs " + e.Needed
	case e.LastPath != "":
		return e.LastPath + " would lose its last link"
	case e.Split != "":
		return e.Split
	case e.Lost > 0:
		return plural.Count(int(e.Lost), "pair", "pairs") + " would lose their path"
	case e.CreditLoop != "" && !e.LoopBefore:
		return "packets could deadlock: the predicted tables have " + e.CreditLoop
	}
	return ""
}

// Lines describes the effect for people: what is known first, then what is predicted.
func (e *Effect) Lines() []string {
	through := plural.Count(int(e.Through), "pair", "pairs") + " over links that go down"
	if !e.Managed {
		return append([]string{"effect: the tables route " + through + ", and no subnet manager makes new ones"}, e.notes()...)
	}
	first := "effect: the tables route " + through
	if e.Through > 0 {
		first += ": their packets are lost until the subnet manager writes new tables"
	}
	return append([]string{first, e.String()}, e.notes()...)
}

func (e *Effect) notes() (lines []string) {
	for _, note := range e.Notes {
		lines = append(lines, "prediction: "+note)
	}
	return lines
}

// String describes the prediction in one line.
func (e *Effect) String() string {
	parts := []string{
		fmt.Sprintf("%s rerouted, %d lost", plural.Count(int(e.Rerouted), "pair", "pairs"), e.Lost),
		fmt.Sprintf("largest load %d before and %d after", e.LoadBefore, e.LoadAfter),
	}
	switch {
	case e.CreditLoop == "":
		parts = append(parts, "no credit loop")
	case e.LoopBefore:
		parts = append(parts, e.CreditLoop+", as now")
	default:
		parts = append(parts, e.CreditLoop)
	}
	if e.Basis != "" {
		parts = append(parts, e.Basis)
	}
	return "prediction: " + strings.Join(parts, "; ")
}

package page

import (
	"time"

	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
)

// findings is the view of the table of findings: effects of another finding stand below it.
type findings struct {
	Groups [][]row
	Left   []checkCount // left out of the table
	Acked  []ackedRow
	Grown  []ackedRow // those of Groups that have outgrown their ack
	Whole  bool       // nothing was left unjudged
	Since  bool       // some rows have Since
}

type row struct {
	Severity, Check, Subject, Message, Since, Group string
	Rank, Depth                                     int
}

type ackedRow struct{ Severity, Check, Subject, Message, Now, Then, By, Until, Reason string }

func newAcked(list []audit.Acked) (rows []ackedRow) {
	for i := range list[:min(len(list), maxRows)] {
		a := &list[i]
		rows = append(rows, ackedRow{
			a.Severity.String(), a.Check, clean(a.Subject.Name()), clean(a.Message), number(a.Now), number(a.Ack.Count),
			clean(a.Ack.By), a.Ack.Until.Format(time.DateOnly), clean(a.Ack.Reason),
		})
	}
	return rows
}

type checkCount struct {
	Check string
	Count int
}

// maxRows limits the findings of the page, because a browser is slow with more; maxOfCheck limits
// the findings of a check.
const (
	maxRows    = 3000
	maxOfCheck = 500
)

func (p *Page) findings(t *topology) (v findings) {
	shown, rows := map[string]int{}, 0
	left := map[string]int{}
	var order []string
	for _, g := range audit.Fold(p.Report.Findings) {
		if n := g.Size(); rows > 0 && rows+n > maxRows || shown[g.Check] == maxOfCheck {
			if left[g.Check] == 0 {
				order = append(order, g.Check)
			}
			left[g.Check] += n
			continue
		}
		shown[g.Check]++
		list := v.add(nil, g, 0, t)
		rows += len(list)
		v.Groups = append(v.Groups, list)
	}
	for _, check := range order {
		v.Left = append(v.Left, checkCount{check, left[check]})
	}
	v.Acked, v.Grown = newAcked(p.Report.Acked), newAcked(p.Report.Grown)
	v.Whole = p.incomplete() == ""
	return v
}

// maxEffects is how many effects of one cause the page has, and maxDepth how deep.
const (
	maxEffects = 1000
	maxDepth   = 8
)

func (v *findings) add(list []row, g *audit.Group, depth int, t *topology) []row {
	r := row{Severity: g.Severity.String(), Check: g.Check, Subject: clean(g.Subject.Name()), Message: clean(g.Message), Rank: int(g.Severity), Depth: min(depth, maxDepth)}
	if !g.Since.IsZero() {
		r.Since, v.Since = g.Since.UTC().Format(time.RFC3339), true
	}
	if t != nil {
		r.Group = t.sectionAt(&g.Subject).anchor()
	}
	list = append(list, r)
	for i, e := range g.Effects {
		if i == maxEffects || len(list) > maxRows {
			n := 0
			for _, e := range g.Effects[i:] {
				n += e.Size()
			}
			return append(list, row{Message: "and " + plural.Count(n, "more", "more") + " that follow from it", Depth: min(depth+1, maxDepth)})
		}
		list = v.add(list, e, depth+1, t)
	}
	return list
}

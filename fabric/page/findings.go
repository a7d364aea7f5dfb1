package page

import (
	"cmp"
	"slices"
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
	Severity, Subject, Message, Since, Place string
	Check                                    checkName
	Rank, Depth                              int
}

type ackedRow struct {
	Severity, Subject, Message, Now, Then, By, Until, Reason string
	Check                                                    checkName
}

// checkName is the name of a check, and where the page explains it; "": nowhere.
type checkName struct{ Name, Anchor string }

// explanation is the explanation of a check.
type explanation struct {
	checkName
	Text string
}

// explanations has the explanations of the checks that a page names.
type explanations struct {
	explain func(check string) string
	known   map[string]bool // checks that the page names, with whether they have one
	found   []explanation
}

// name returns the name of a check that is on the page.
func (e *explanations) name(check string) checkName {
	n := checkName{Name: clean(check)}
	has, ok := e.known[check]
	if !ok && e.explain != nil && audit.CheckName().MatchString(check) {
		if text := e.explain(check); text != "" {
			has = true
			e.found = append(e.found, explanation{checkName{n.Name, "check-" + check}, clean(text)})
		}
	}
	if e.known[check] = has; has {
		n.Anchor = "check-" + check
	}
	return n
}

// list returns the explanations by the names of checks.
func (e *explanations) list() []explanation {
	slices.SortFunc(e.found, func(a, b explanation) int { return cmp.Compare(a.Name, b.Name) })
	return e.found
}

func newAcked(list []audit.Acked, e *explanations) (rows []ackedRow) {
	for i := range list[:min(len(list), maxRows)] {
		a := &list[i]
		rows = append(rows, ackedRow{
			a.Severity.String(), clean(a.Subject.Name()), clean(a.Message), number(a.Now), number(a.Ack.Count),
			clean(a.Ack.By), a.Ack.Until.Format(time.DateOnly), clean(a.Ack.Reason), e.name(a.Check),
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

func (p *Page) findings(t *topology, e *explanations) (v findings) {
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
		list := v.add(nil, g, 0, t, e)
		rows += len(list)
		v.Groups = append(v.Groups, list)
	}
	for _, check := range order {
		v.Left = append(v.Left, checkCount{check, left[check]})
	}
	v.Acked, v.Grown = newAcked(p.Report.Acked, e), newAcked(p.Report.Grown, e)
	v.Whole = p.incomplete() == ""
	return v
}

// maxEffects is how many effects of one cause the page has, and maxDepth how deep.
const (
	maxEffects = 1000
	maxDepth   = 8
)

func (v *findings) add(list []row, g *audit.Group, depth int, t *topology, e *explanations) []row {
	r := row{Severity: g.Severity.String(), Subject: clean(g.Subject.Name()), Message: clean(g.Message), Rank: int(g.Severity), Depth: min(depth, maxDepth)}
	if !g.Since.IsZero() {
		r.Since, v.Since = g.Since.UTC().Format(time.RFC3339), true
	}
	if t != nil {
		r.Place = t.anchors[g.Finding]
	}
	r.Check = e.name(g.Check)
	list = append(list, r)
	for i, effect := range g.Effects {
		if i == maxEffects || len(list) > maxRows {
			n := 0
			for _, x := range g.Effects[i:] {
				n += x.Size()
			}
			return append(list, row{Message: "and " + plural.Count(n, "more", "more") + " that follow from it", Depth: min(depth+1, maxDepth)})
		}
		list = v.add(list, effect, depth+1, t, e)
	}
	return list
}

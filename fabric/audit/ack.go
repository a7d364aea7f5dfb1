package audit

import (
	"slices"
	"strings"
	"time"
)

// Ack acknowledges a finding: it is not reported again until a day has passed.
type Ack struct {
	Pattern string    // an ID, in which * stands for any text
	Until   time.Time // the beginning of the last day that it holds on
	By      string
	Reason  string
	Name    string // what the subject was called when it was acknowledged
	// Count is how much there was of the fault when it was acknowledged, or at the first run
	// after that (CountOf); 0: unknown, then the ack holds whatever there is, but of a finding
	// with members only what it names.
	Count float64
}

// growth is how many times as much of a fault as was acknowledged is reported again.
const growth = 10

// outgrown reports whether there is so much more of the fault than was acknowledged that
// it is reported again.
func (a *Ack) outgrown(count float64) bool { return a.Count > 0 && count >= growth*a.Count }

// CountOf returns how much found has of what a covers: of one finding, its count; of a
// pattern, the number of findings. It is 0 if found has none of it.
func (a *Ack) CountOf(found []Finding) (count float64) {
	for i := range found {
		if f := &found[i]; a.Covers(f) {
			count = a.add(count, f)
		}
	}
	return count
}

// add returns count with what f has, which a covers.
func (a *Ack) add(count float64, f *Finding) float64 {
	if a.isPattern() {
		return count + float64(1+len(f.Absorbed))
	}
	return max(count, a.countIn(f))
}

// countIn returns how much f has of the one fault that a covers.
func (a *Ack) countIn(f *Finding) float64 {
	switch own := slices.Contains(f.ids(), a.Pattern); {
	case own && len(f.Members) > 0:
		return float64(len(f.units()))
	case own && f.Count > 0:
		return f.Count
	case own:
		return float64(1 + len(f.Absorbed))
	}
	for i := range f.Merged {
		if g := &f.Merged[i]; a.Covers(g) {
			return a.countIn(g)
		}
	}
	return 1 // of the members
}

func (a *Ack) isPattern() bool { return strings.Contains(a.Pattern, "*") }

// longestAck is how far ahead an ack may end: nothing is acknowledged for ever.
const longestAck = 366 * 24 * time.Hour

// InForce reports whether now is not after the last day of a.
func (a *Ack) InForce(now time.Time) bool {
	return now.Before(a.Until.AddDate(0, 0, 1))
}

// Covers reports whether a is about f, or about a member of f, or a finding that f has
// absorbed. A finding about a link is named by either end.
func (a *Ack) Covers(f *Finding) bool {
	match := func(id string) bool { return matches(a.Pattern, id) }
	return slices.ContainsFunc(f.ids(), match) || slices.ContainsFunc(f.Absorbed, match)
}

// Names reports whether name, of a check, matches the pattern of a.
func (a Ack) Names(name string) bool { return matches(a.Pattern, name) }

// matches reports whether pattern, in which * stands for any text, is all of text. Both
// may be any bytes: a regular expression must be UTF-8.
func matches(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] { // the first place leaves the most for the others
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, parts[last])
}

// Acks are all of a subnet.
type Acks []Ack

// Uncounted returns the counts of the acks of one finding that have none, by pattern, if found
// has the finding: written by hand, or made when there was nothing of it.
func (list Acks) Uncounted(found []Finding, now time.Time) (counts map[string]float64) {
	var some Acks
	for _, a := range list {
		if a.Count == 0 && !a.isPattern() && a.InForce(now) {
			some = append(some, a)
		}
	}
	counts = map[string]float64{}
	for a, n := range some.index(found, now).counts {
		if n > 0 {
			counts[a.Pattern] = n
		}
	}
	return counts
}

// SetCounts sets the counts of the acks that have none.
func (list Acks) SetCounts(counts map[string]float64) {
	for i := range list {
		if a := &list[i]; a.Count == 0 {
			a.Count = counts[a.Pattern]
		}
	}
}

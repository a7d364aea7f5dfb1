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
	// Count is how much there was of the fault when it was acknowledged (CountOf); 0:
	// unknown, then the ack holds whatever there is.
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
	isPattern := strings.Contains(a.Pattern, "*")
	for i := range found {
		switch f := &found[i]; {
		case !a.Covers(f):
		case isPattern:
			count += float64(1 + len(f.Absorbed))
		case f.Count > 0:
			count = max(count, f.Count)
		default:
			count = max(count, float64(1+len(f.Absorbed)))
		}
	}
	return count
}

// longestAck is how far ahead an ack may end: nothing is acknowledged for ever.
const longestAck = 366 * 24 * time.Hour

// InForce reports whether now is not after the last day of a.
func (a *Ack) InForce(now time.Time) bool {
	return now.Before(a.Until.AddDate(0, 0, 1))
}

// Covers reports whether a is about f, or about a finding that f has absorbed. A finding
// about a link is named by either end.
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

// Of is the ack in force that covers f; without one, an ack that has
// ended.
func (list Acks) Of(f *Finding, now time.Time) (a *Ack, inForce bool) {
	for i := range list {
		switch {
		case !list[i].Covers(f):
		case list[i].InForce(now):
			return &list[i], true
		case a == nil || a.Until.Before(list[i].Until):
			a = &list[i]
		}
	}
	return a, false
}

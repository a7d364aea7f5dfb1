package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

// Ack acknowledges a finding: it is not reported again until a day has passed. Acks are lines of
// a file (AckFile), which also users edit.
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

// Acks are the acks of a subnet.
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

// maxAckFile limits the file of acks, in bytes.
const maxAckFile = 4 << 20

// day is the format of a day in the file.
const day = "2006-01-02"

// ackHeader begins the file of acks, which can be edited by hand. A line is
//
//	ID YYYY-MM-DD "who" "reason" ["name" [count]]
//
// with texts as Go writes them in quotes, so that no name breaks a line. count is
// Ack.Count. What follows # is a comment. An invalid line acknowledges nothing.
const ackHeader = `# Acknowledged findings: fabsh audit does not report them until their day has passed.
# ID (* stands for any text)  last day  "who"  "reason"  ["name of the subject then" [count then]]
`

// Patterns of the two parts of an ID, with * for any text. Nothing else ever covers a
// finding: subjects are GUIDs in one spelling, never names.
var (
	checkPattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_.*]+$`) })
	subjectPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(fabric|0x[0-9a-f]{16}(/(0|[1-9][0-9]{0,2}))?|[0-9a-fx/]*\*[0-9a-fx/*]*)$`)
	})
)

// NewAck returns the ack that a user enters, or an error if it is invalid.
func NewAck(id, name, until, by, reason string, now time.Time) (*Ack, error) {
	return newAck(id, name, until, by, reason, now, longestAck)
}

// newAck is NewAck with a limit on the time from now.
func newAck(id, name, until, by, reason string, now time.Time, longest time.Duration) (*Ack, error) {
	check, subject, ok := strings.Cut(id, ":")
	last, err := time.ParseInLocation(day, until, now.Location())
	a := &Ack{Pattern: id, Until: last, By: by, Reason: reason, Name: name}
	switch {
	case !ok || !checkPattern().MatchString(check) || !subjectPattern().MatchString(subject) && !a.Covers(&Finding{Check: check, Subject: OfFabric()}):
		return nil, fmt.Errorf("invalid ID %q; use CHECK:GUID/PORT, * for any text", id)
	case strings.Trim(id, "*:.") == "":
		return nil, fmt.Errorf("%q would acknowledge everything; name a check or a subject", id)
	case err != nil:
		return nil, fmt.Errorf("until %q: want a day such as %s", until, now.AddDate(0, 1, 0).Format(day))
	case last.Sub(now) > longest:
		return nil, fmt.Errorf("until %s is more than a year ahead; choose a day within a year", until)
	case strings.TrimSpace(by) == "" || strings.TrimSpace(reason) == "":
		return nil, errors.New("an ack needs a reason and a name (who acknowledges)")
	case len(reason) > 1000 || len(by) > 200:
		return nil, errors.New("the reason is longer than 1000 bytes, or the name than 200")
	}
	return a, nil
}

// line returns the line of a in the file.
func (a *Ack) line() string {
	s := fmt.Sprintf("%s %s %s %s", a.Pattern, a.Until.Format(day), strconv.QuoteToASCII(a.By), strconv.QuoteToASCII(a.Reason))
	if a.Name != "" || a.Count > 0 {
		s += " " + strconv.QuoteToASCII(a.Name)
	}
	if a.Count > 0 {
		s += " " + strconv.FormatFloat(a.Count, 'g', -1, 64)
	}
	return s + "\n"
}

// ReadAcks reads the file at path; a missing file has none. Lines that
// cannot be read are left out, and are errors that name them.
func ReadAcks(path string, now time.Time) (list Acks, bad []error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, []error{err}
	}
	for i, line := range strings.Split(data, "\n") {
		a, err := parseAck(line, now)
		switch {
		case err != nil:
			bad = append(bad, fmt.Errorf("%s:%d: %w; the line is ignored", path, i+1, err))
		case a != nil:
			list = append(list, *a)
		}
	}
	return list, bad
}

// readSmall returns the text of a file of at most maxAckFile bytes; "": it does not exist.
func readSmall(path string) (string, error) {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAckFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxAckFile:
		return "", fmt.Errorf("%s: more than %d MB", path, maxAckFile>>20)
	}
	return string(data), nil
}

// parseAck reads a line; nil: it has no ack.
func parseAck(line string, now time.Time) (*Ack, error) {
	a, _, err := parseAckLine(line, now)
	return a, err
}

// parseAckLine is parseAck, with the comment at the end of the line.
func parseAckLine(line string, now time.Time) (a *Ack, comment string, err error) {
	rest := strings.TrimSpace(line)
	var fields []string
	for rest != "" && rest[0] != '#' {
		var field string
		if rest[0] == '"' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, "", errors.New("a quote does not end")
			}
			field, _ = strconv.Unquote(quoted)
			rest = rest[len(quoted):]
		} else {
			end := strings.IndexAny(rest, " \t")
			if end < 0 {
				end = len(rest)
			}
			field, rest = rest[:end], rest[end:]
		}
		fields = append(fields, field)
		rest = strings.TrimLeft(rest, " \t\r")
	}
	count := 0.0
	switch n := len(fields); {
	case n == 0:
		return nil, "", nil
	case n == 4:
		fields = append(fields, "")
	case n == 6:
		if count, err = strconv.ParseFloat(fields[5], 64); err != nil || !(count > 0) || math.IsInf(count, 0) {
			return nil, "", fmt.Errorf("count %q: want a positive number", fields[5])
		}
	case n != 5:
		return nil, "", fmt.Errorf(`want ID YYYY-MM-DD "who" "reason", got %d fields`, n)
	}
	const setBack = 7 * 24 * time.Hour // the clock may have been, since the ack was made
	a, err = newAck(fields[0], fields[4], fields[1], fields[2], fields[3], now, longestAck+setBack)
	if err == nil {
		a.Count = count
	}
	return a, rest, err
}

// AddAck adds a to the file at path. Earlier acks with its pattern are removed.
func AddAck(path string, a *Ack) error {
	_, err := editAcks(path, func(old *Ack, _ string) (string, bool) { return "", old.Pattern == a.Pattern }, a.line())
	return err
}

// RemoveAcks removes the acks of a pattern from the file at path, and returns how many.
func RemoveAcks(path, pattern string) (n int, err error) {
	return editAcks(path, func(old *Ack, _ string) (string, bool) { return "", old.Pattern == pattern }, "")
}

// RecordCounts adds counts, by pattern, to the acks in the file at path that have none.
func RecordCounts(path string, counts map[string]float64) error {
	if len(counts) == 0 {
		return nil
	}
	_, err := editAcks(path, func(old *Ack, comment string) (string, bool) {
		n := counts[old.Pattern]
		if old.Count > 0 || n == 0 {
			return "", false
		}
		counted := *old
		counted.Count = n
		line := counted.line()
		if comment != "" {
			line = strings.TrimSuffix(line, "\n") + " " + comment + "\n"
		}
		return line, true
	}, "")
	return err
}

// editAcks replaces the acks for which edit is true with what it returns, and appends text.
// edit is called with the comment at the end of the line. The file is replaced as a whole; all
// other lines stay, even invalid ones. Without a change it is not written.
func editAcks(path string, edit func(a *Ack, comment string) (line string, ok bool), text string) (edited int, err error) {
	held, err := format.AcquireLock(path + ".lock")
	if err != nil {
		return 0, err
	}
	defer held.Release()
	old, err := readSmall(path)
	if err != nil {
		return 0, err
	}
	var kept strings.Builder
	if old == "" {
		kept.WriteString(ackHeader)
	}
	for line := range strings.Lines(old) {
		line = strings.TrimSuffix(line, "\n") + "\n"
		// An ack that has ended, or that is longer than NewAck permits, is one too.
		if a, comment, err := parseAckLine(line, time.Unix(1<<40, 0)); err == nil && a != nil {
			if changed, ok := edit(a, comment); ok {
				line = changed
				edited++
			}
		}
		kept.WriteString(line)
	}
	kept.WriteString(text)
	switch {
	case text == "" && edited == 0:
		return 0, nil
	case kept.Len() > maxAckFile:
		return 0, fmt.Errorf("%s is full; remove old lines", path)
	}
	return edited, format.WriteOwn(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, kept.String())
		return err
	})
}

// AckFile returns where the acks of a subnet are, below a directory of states.
func AckFile(dir string, subnet fabric.Subnet) string {
	return filepath.Join(subnet.Folder(dir), "acks")
}

// ackIndex finds the acks of a finding without comparing it with each: a large fabric may have
// thousands of both.
type ackIndex struct {
	now    time.Time
	acks   Acks
	at     map[string][]int // into acks, by the part of the pattern without *
	counts map[*Ack]float64 // Ack.CountOf all findings
}

// index returns the index for found.
func (list Acks) index(found []Finding, now time.Time) *ackIndex {
	x := &ackIndex{now: now, acks: list, at: map[string][]int{}, counts: map[*Ack]float64{}}
	for i := range list {
		key := patternKey(list[i].Pattern)
		x.at[key] = append(x.at[key], i)
	}
	if len(list) == 0 {
		return x
	}
	for i := range found {
		f := &found[i]
		for _, a := range x.matching(append(f.ids(), f.Absorbed...)) {
			x.counts[a] = a.add(x.counts[a], f)
		}
	}
	return x
}

// patternKey returns the part of a pattern by which IDs find it: all of it, the check, the
// subject, or nothing.
func patternKey(pattern string) string {
	check, subject, ok := strings.Cut(pattern, ":")
	switch {
	case !strings.Contains(pattern, "*"):
		return pattern
	case ok && !strings.Contains(check, "*"):
		return check + ":"
	case ok && !strings.Contains(subject, "*"):
		return ":" + subject
	}
	return ""
}

// candidates returns the indices of the acks that may match id.
func (x *ackIndex) candidates(id string) []int {
	check, subject, _ := strings.Cut(id, ":")
	return slices.Concat(x.at[id], x.at[check+":"], x.at[":"+subject], x.at[""])
}

// matching returns the acks that match one of ids, in the order of the list.
func (x *ackIndex) matching(ids []string) (list []*Ack) {
	var all []int
	for _, id := range ids {
		for _, i := range x.candidates(id) {
			if matches(x.acks[i].Pattern, id) {
				all = append(all, i)
			}
		}
	}
	slices.Sort(all)
	for _, i := range slices.Compact(all) {
		list = append(list, &x.acks[i])
	}
	return list
}

// of returns the first ack in force that matches one of ids; without one, the ack that ended
// last.
func (x *ackIndex) of(ids []string) (a *Ack, inForce bool) {
	for _, m := range x.matching(ids) {
		switch {
		case m.InForce(x.now):
			return m, true
		case a == nil || a.Until.Before(m.Until):
			a = m
		}
	}
	return a, false
}

// cover is what acks cover of a finding.
type cover struct {
	ack   *Ack      // the first in force; without one, an ack that has ended
	full  bool      // the whole finding
	grown bool      // ack would cover it, but it has outgrown it
	acked []Subject // of a finding with members, the units that acks in force are about
	count int       // how many units were acknowledged: more than acked if it is unknown which
}

// cover returns what acks cover of f: all of it, by an ack of f, or of a finding that it has
// absorbed; or some of its units.
func (x *ackIndex) cover(f *Finding) cover {
	if len(x.acks) == 0 {
		return cover{}
	}
	c := x.coverOwn(f)
	for i := range f.Merged {
		if c.full || c.grown {
			break
		}
		switch m := x.coverOwn(&f.Merged[i]); {
		case m.full, m.grown:
			return cover{ack: m.ack, full: m.full, grown: m.grown}
		case c.ack == nil && m.count == 0:
			c.ack = m.ack
		}
	}
	return c
}

func (x *ackIndex) coverOwn(f *Finding) (c cover) {
	if len(f.Members) > 0 {
		return x.coverUnits(f)
	}
	a, inForce := x.of(f.ids())
	c.ack, c.grown = a, inForce && a.outgrown(x.counts[a])
	c.full = inForce && !c.grown
	return c
}

// coverUnits covers a finding with members. An ack of its ID is about as many units as the
// finding had then: later units are reported. If it has no count, it is
// about the subject that it names.
func (x *ackIndex) coverUnits(f *Finding) (c cover) {
	units := f.units()
	held := map[string]bool{} // subjects that acks are about, by key
	for i, s := range f.subjects() {
		a, inForce := x.of(f.idsAt(s))
		switch {
		case !inForce:
			if c.ack == nil {
				c.ack = a
			}
			continue
		case a.isPattern() && a.outgrown(x.counts[a]):
			return cover{ack: a, grown: true}
		case i == 0 && !a.isPattern() && a.Count >= float64(len(units)):
			return cover{ack: a, full: true}
		case i == 0 && !a.isPattern() && a.Count > 0:
			c.count = max(1, int(a.Count))
		}
		if c.ack == nil || !c.ack.InForce(x.now) {
			c.ack = a
		}
		// An ack of the whole, of fewer ports, is about no port in particular.
		if i > 0 || a.isPattern() || a.Count == 0 || s.Kind != KindNode || slices.ContainsFunc(units, func(u Subject) bool { return u.Key() == s.Key() }) {
			held[s.Key()] = true
		}
	}
	for _, u := range units {
		if held[u.Key()] || u.Kind == KindPort && held[u.Ends[0].Node.String()] {
			c.acked = append(c.acked, u)
		}
	}
	c.count = max(c.count, len(c.acked))
	c.full = len(c.acked) == len(units)
	return c
}

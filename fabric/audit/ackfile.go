package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

// The file of acks can be edited by hand. A line is
//
//	ID YYYY-MM-DD "who" "reason" ["name" [count]]
//
// with texts as Go writes them in quotes, so that no name breaks a line. count is
// Ack.Count. What follows # is a comment. A line that cannot be read acknowledges nothing.

// maxAckFile bounds the file, in bytes.
const maxAckFile = 4 << 20

const day = "2006-01-02"

const ackHeader = `# Acknowledged findings: fabsh audit does not report them until their day has passed.
# ID (* stands for any text)  last day  "who"  "reason"  ["name of the subject then" [count then]]
`

// What the two parts of an ID can be, with * for any text. Nothing else ever covers a
// finding: subjects are GUIDs in one spelling, never names.
var (
	checkPattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_.*]+$`) })
	subjectPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(fabric|0x[0-9a-f]{16}(/(0|[1-9][0-9]{0,2}))?|[0-9a-fx/]*\*[0-9a-fx/*]*)$`)
	})
)

// NewAck checks what a user enters.
func NewAck(id, name, until, by, reason string, now time.Time) (*Ack, error) {
	return newAck(id, name, until, by, reason, now, longestAck)
}

// newAck is NewAck with the longest time from now.
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

// line is a in the file.
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
	f, err := format.OpenRegular(path)
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

// AddAck adds a to the file at path. Earlier acks of the same pattern are removed.
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
// other lines stay, also those that cannot be read. Without a change it is not written.
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
	return edited, format.WriteFile(context.Background(), path, func(w io.Writer) error {
		_, err := io.WriteString(w, kept.String())
		return err
	})
}

// AckFile returns where the acks of a subnet are, below a directory of states.
func AckFile(dir string, subnet fabric.Subnet) string {
	return filepath.Join(subnet.Folder(dir), "acks")
}

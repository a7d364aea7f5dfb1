package remedy

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// EntryKind is the kind of an entry of the log.
type EntryKind string

// The kinds of entries.
const (
	KindRun      EntryKind = "run"      // a run of remedies; its decisions follow
	KindDecision EntryKind = "decision" // an action, planned or declined
	KindApplied  EntryKind = "applied"  // a planned action was applied and confirmed
	KindReleased EntryKind = "released" // another enabled a port that fabsh isolated, or disabled one in its test
	KindState    EntryKind = "state"    // the state, where older entries were left out
)

// Entry is a line of the log. Which fields it has depends on its kind.
type Entry struct {
	At   time.Time `json:"at"`
	Kind EntryKind `json:"kind"`
	// Of is of KindRun: the time of the findings.
	Of time.Time `json:"of,omitzero"`
	// The others are of decisions and what follows them.
	Remedy  string     `json:"remedy,omitempty"`
	Action  ActionKind `json:"action,omitempty"`
	Port    Place      `json:"port,omitzero"` // of the Set
	Peer    Place      `json:"peer,omitzero"` // the other end
	Subject string     `json:"subject,omitempty"`
	Name    string     `json:"name,omitempty"` // of the link, or of the subject of a ticket; untrusted
	Reason  string     `json:"reason,omitempty"`
	Rule    string     `json:"rule,omitempty"` // by which it is declined; "": it is planned
	Why     string     `json:"why,omitempty"`
	Kept    bool       `json:"kept,omitempty"` // the port passed its test, and is enabled already
	// State and Covers are of KindState: the state after the next Covers entries.
	State  *State `json:"state,omitempty"`
	Covers int    `json:"covers,omitempty"`
}

// maxText is how many bytes of a text are kept in the log.
const maxText = 400

// bounded returns e with texts of limited length.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Name, &e.Reason, &e.Rule, &e.Why, &e.Remedy, &e.Subject} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "")
		}
	}
	return e
}

// castagnoli is the polynomial of the checksums, CRC32C (RFC 3720, section 12.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns the line of e: a checksum, and JSON.
func (e Entry) line() ([]byte, error) {
	text, err := json.Marshal(e.bounded())
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

// parseLine reads a line without its newline.
func parseLine(line []byte) (e Entry, err error) {
	var sum uint32
	if len(line) < 10 || line[8] != ' ' {
		return e, errors.New("not a line of the log")
	}
	if _, err := fmt.Sscanf(string(line[:8]), "%08x", &sum); err != nil || crc32.Checksum(line[9:], castagnoli) != sum {
		return e, errors.New("checksum does not match")
	}
	if !utf8.Valid(line) {
		return e, errors.New("invalid UTF-8")
	}
	if err := json.Unmarshal(line[9:], &e); err != nil {
		return e, err
	}
	switch {
	case e.At.IsZero():
		return e, errors.New("it has no time")
	case (e.Kind == KindState) != (e.State != nil):
		return e, errors.New("the state is missing")
	case e.State != nil && (slices.Contains(e.State.Ports, nil) || len(e.State.Ports) > 2*maxPorts || len(e.State.Runs) > keptRuns || e.Covers < 0):
		return e, errors.New("the state is invalid")
	}
	return e, nil
}

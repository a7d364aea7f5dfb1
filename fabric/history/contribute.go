package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Contributor adds what other programs than the recorder know: findings, acknowledgements, changes. It
// needs no lock; all that it adds is one transaction.
type Contributor struct {
	*batch
	t    int64
	last map[*table]int64 // n of the last row of a table at t
}

// Contribute opens the history at path, which a recorder may write, and adds what f does. Without a
// history it does nothing.
func Contribute(ctx context.Context, path string, now time.Time, f func(c *Contributor)) error {
	if !exists(path) {
		return nil
	}
	if kind := remoteKind(filepath.Dir(path)); kind != "" {
		return fmt.Errorf("%s: on %s, a network file system: nothing was added", path, kind)
	}
	for {
		replaced, err := contribute(ctx, path, now, f)
		if !replaced {
			return err
		}
	}
}

// contribute is Contribute, unless the file was replaced meanwhile (Compact).
func contribute(ctx context.Context, path string, now time.Time, f func(c *Contributor)) (replaced bool, err error) {
	file, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	s, err := open(ctx, path, recorderOptions)
	if err != nil {
		return false, err
	}
	defer s.Close()
	err = s.inBatch(ctx, func(b *batch) error {
		if st, err := os.Stat(path); err != nil || !os.SameFile(st, file) {
			replaced = true
			return errReplaced
		}
		f(&Contributor{b, now.Unix(), map[*table]int64{}})
		return nil
	})
	return replaced, err
}

var errReplaced = errors.New("the history was replaced")

// place returns the ids of a node and a port; nil where the history does not have them.
func (c *Contributor) place(g mad.GUID, num int) (node, port any) {
	if g == 0 {
		return nil, nil
	}
	for _, row := range c.rows(tableNode, "guid = ?", g.String()) {
		node = row[0]
	}
	if node == nil || num < 0 {
		return node, nil
	}
	for _, row := range c.rows(tablePort, "node = ? and num = ?", node, int64(num)) {
		port = row[0]
	}
	return node, port
}

// maxFindings limits the findings of a job that are kept.
const maxFindings = 100_000

// Findings adds what a run of a job found: findings that are new are opened, and those that it had and
// judged again, as judged reports of audit and check, are closed.
func (c *Contributor) Findings(job string, found []audit.Finding, judged func(audit, check string) bool) {
	type place struct {
		f       *audit.Finding
		subject audit.Subject
	}
	now := map[string]place{}
	for i := range found {
		f := &found[i]
		for _, s := range append([]audit.Subject{f.Subject}, f.Members...) {
			if len(now) < maxFindings {
				now[f.Check+":"+s.Key()] = place{f, s}
			}
		}
	}
	audits := map[string]string{} // by check
	for i := range found {
		audits[found[i].Check] = found[i].Audit
	}
	for _, old := range c.rows(tableFinding, "job = ? and till is null", job) {
		key, _ := old[0].(string)
		row := slices.Clone(old)
		if x, ok := now[key]; ok {
			row[4], row[5], row[9] = max(c.t, number(old[2])), int64(x.f.Severity), x.f.Message
			delete(now, key)
		} else if check := checkOf(key); judged(audits[check], check) {
			row[3], row[4] = max(c.t, number(old[2])), max(c.t, number(old[2]))
		} else {
			continue
		}
		c.put(tableFinding, old, row)
	}
	for _, key := range sortedKeys(now) {
		x := now[key]
		t := c.t
		for _, row := range c.rows(tableFinding, "key = ? and job = ? and t >= ?", key, job, t) { // it was closed in this second
			t = max(t, number(row[2])+1)
		}
		var node, port any
		if len(x.subject.Ends) > 0 {
			node, port = c.place(x.subject.Ends[0].Node, x.subject.Ends[0].Num)
		}
		c.insert(tableFinding, key, job, t, nil, t, int64(x.f.Severity), node, port, x.subject.Name(), x.f.Message)
	}
}

// States adds to a new history what the states of earlier runs of audits have: their findings, since when each
// was found. The files stay: older versions of fabsh, and jobs, go on with them. Members are findings of
// their own, as in the state.
func (r *Recorder) States(ctx context.Context, list []*audit.State) error {
	return r.inBatch(ctx, func(b *batch) error {
		if len(b.rows(tablePending, "name = 'states'")) > 0 {
			return nil
		}
		b.mark("states", r.lastT)
		for _, st := range list {
			c := &Contributor{b, 0, map[*table]int64{}}
			found, at := st.LastRun()
			if len(b.rows(tableFinding, "job = ? limit 1", st.Job())) > 0 {
				continue // it has contributed since
			}
			seen := map[string]bool{}
			for i := range found {
				f := &found[i]
				if key := f.ID(); !seen[key] && len(seen) < maxFindings {
					seen[key] = true
					var node, port any
					if len(f.Subject.Ends) > 0 {
						node, port = c.place(f.Subject.Ends[0].Node, f.Subject.Ends[0].Num)
					}
					b.insert(tableFinding, key, st.Job(), f.Since.Unix(), nil, max(at.Unix(), f.Since.Unix()), int64(f.Severity), node, port, f.Subject.Name(), f.Message)
				}
			}
		}
		return nil
	})
}

// checkOf returns the check of the key of a finding.
func checkOf(key string) string {
	for i := range key {
		if key[i] == ':' {
			return key[:i]
		}
	}
	return key
}

// Acks copies the acknowledgements of the file: new ones begin, and those that it no longer has end.
func (c *Contributor) Acks(list audit.Acks) {
	now := map[string]audit.Ack{}
	for _, a := range list {
		now[a.Pattern] = a // of two, the second counts
	}
	for _, old := range c.rows(tableAck, "till is null") {
		pattern, _ := old[0].(string)
		a, ok := now[pattern]
		if ok && old[2] == a.Until.Unix() && old[3] == a.By && old[4] == a.Reason {
			delete(now, pattern)
			continue
		}
		row := slices.Clone(old)
		row[5] = max(c.t, number(old[1]))
		c.put(tableAck, old, row)
	}
	for _, pattern := range sortedKeys(now) {
		a, t := now[pattern], c.t
		for _, row := range c.rows(tableAck, "pattern = ? and t >= ?", pattern, t) {
			t = max(t, number(row[1])+1)
		}
		c.insert(tableAck, pattern, t, a.Until.Unix(), a.By, a.Reason, nil)
	}
}

// Change adds a change of the fabric, or an attempt: action is plan, apply, confirm, revert, remedy,
// restore or log. node may be 0, and port negative.
func (c *Contributor) Change(action, subject, who, outcome string, node mad.GUID, port int) {
	n, ok := c.last[tableChange]
	if !ok {
		n = -1
		for _, row := range c.rows(tableChange, "t = ?", c.t) {
			n = max(n, number(row[1]))
		}
	}
	c.last[tableChange] = n + 1
	nodeID, portID := c.place(node, port)
	c.insert(tableChange, c.t, n+1, action, subject, who, outcome, nodeID, portID)
}

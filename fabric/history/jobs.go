package history

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// jobPrefix begins the names of the states of jobs in the table pending.
const jobPrefix = "job "

// jobStates are the states of audits' jobs in a history: an audit.Store. Each of its methods opens the
// history, which a recorder and other jobs may write.
type jobStates struct {
	ctx  context.Context
	path string
}

// JobStates returns the states of jobs in the history of a subnet below the directory dir; nil without a
// history there, and on a network file system.
func JobStates(ctx context.Context, dir string, s fabric.Subnet) audit.Store {
	if dir == "" || !s.IsKnown() {
		return nil
	}
	folder := s.Folder(dir)
	path := filepath.Join(folder, FileName)
	if !exists(path) || remoteKind(folder) != "" {
		return nil
	}
	return &jobStates{context.WithoutCancel(ctx), path}
}

// open calls f with the history.
func (j *jobStates) open(f func(s *Store) error) error {
	s, err := Open(j.ctx, j.path)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

// Jobs returns the jobs that have a state.
func (j *jobStates) Jobs() (names []string, err error) {
	err = j.open(func(s *Store) error {
		return s.each(j.ctx, "select name from pending where name like ? order by name", []any{jobPrefix + "%"}, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			if job := strings.TrimPrefix(name, jobPrefix); audit.CheckJob(job) == nil {
				names = append(names, job)
			}
			return err
		})
	})
	return names, err
}

// Load returns the state of a job.
func (j *jobStates) Load(job string) (data []byte, saved time.Time, err error) {
	err = j.open(func(s *Store) error {
		var t int64
		err := s.db.QueryRowContext(j.ctx, "select t, data from pending where name = ? and length(data) <= ?", jobPrefix+job, maxBlob).Scan(&t, &data)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		saved = at(t)
		return s.failed(err)
	})
	return data, saved, err
}

// Save replaces the state of a job. The time of it is that of the clock of the machine, as of files.
func (j *jobStates) Save(job string, data []byte) error {
	added := false
	err := Contribute(j.ctx, j.path, time.Now(), func(c *Contributor) {
		added = true
		var old []any
		for _, row := range c.rows(tablePending, "name = ?", jobPrefix+job) {
			old = row
		}
		c.put(tablePending, old, []any{jobPrefix + job, c.t, data})
	})
	if err == nil && !added {
		err = ErrNone
	}
	return err
}

// LinksSeen returns when the link of each port was seen last, from since on: the end of its last life, or the
// last cycle.
func (s *Store) LinksSeen(ctx context.Context, since time.Time) (map[End]audit.Seen, error) {
	last, err := s.lastCycle(ctx)
	if err != nil || last.Before(since) {
		return nil, err
	}
	seen := map[End]audit.Seen{}
	add := func(e, peer End, toSwitch bool, up time.Time) {
		if !up.Before(since) && !up.Before(seen[e].Up) {
			seen[e] = audit.Seen{Up: up, Peer: peer.Node, PeerNum: peer.Port, ToSwitch: toSwitch}
		}
	}
	query := `select n.guid, n.type, p.num, m.guid, m.type, q.num, coalesce(case when l.till is not null then (select max(t) from cycle where t < l.till) end, ?) from link l
		join port p on p.id = l.a join node n on n.id = p.node join port q on q.id = l.b join node m on m.id = q.node
		where l.till is null or l.till >= ?`
	err = s.each(ctx, query, []any{last.Unix(), since.Unix()}, func(scan func(...any) error) error {
		var guids [2]string
		var types [2]int64
		var ends [2]End
		var up int64
		if err := scan(&guids[0], &types[0], &ends[0].Port, &guids[1], &types[1], &ends[1].Port, &up); err != nil {
			return err
		}
		for i := range ends {
			var err error
			if ends[i].Node, err = s.guid(guids[i]); err != nil {
				return err
			}
		}
		add(ends[0], ends[1], types[1] == int64(mad.NodeTypeSwitch), at(up))
		add(ends[1], ends[0], types[0] == int64(mad.NodeTypeSwitch), at(up))
		return nil
	})
	return seen, err
}

// FoundSince returns since when findings exist that a job had and judged from judged on, by their IDs: the
// earliest time of all jobs.
func (s *Store) FoundSince(ctx context.Context, judged time.Time) (map[string]time.Time, error) {
	since := map[string]time.Time{}
	err := s.each(ctx, "select key, min(t) from finding where till is null and checked >= ? group by key", []any{judged.Unix()}, func(scan func(...any) error) error {
		var key string
		var t int64
		err := scan(&key, &t)
		since[key] = at(t)
		return err
	})
	return since, err
}

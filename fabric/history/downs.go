package history

import (
	"context"
	"time"

	"fabsh/fabric/audit"
	"fabsh/mad"
)

// PortDowns are the link-downs of ports within audit.FlapWindow before a time. Each is of the time between
// two sweeps; a first entry without any says how far back they are known.
type PortDowns struct {
	known audit.Downs
	ports map[portKey][]audit.Downs
}

// Of returns the link-downs of a port, for audit.JudgeDowns.
func (d *PortDowns) Of(node mad.GUID, num int) []audit.Downs {
	return append([]audit.Downs{d.known}, d.ports[portKey{node, num}]...)
}

// Any reports whether a port has link-downs.
func (d *PortDowns) Any(node mad.GUID, num int) bool { return len(d.ports[portKey{node, num}]) > 0 }

// Downs returns the involuntary link-downs of all ports within audit.FlapWindow before now: not of ports that
// were disabled, nor those with a node that vanished or restarted. Nil: nothing was recorded in that time.
func (s *Store) Downs(ctx context.Context, now time.Time) (*PortDowns, error) {
	begin := now.Add(-audit.FlapWindow)
	cycles, err := s.cycleTimes(ctx, begin, now)
	if err != nil || len(cycles) == 0 {
		return nil, err
	}
	d := &PortDowns{audit.Downs{From: cycles[0], To: cycles[len(cycles)-1]}, map[portKey][]audit.Downs{}}
	events, err := s.Changes(ctx, begin, now.Add(time.Second), LinkDown, LinkFlap)
	if err != nil {
		return nil, err
	}
	before := map[int64]time.Time{}
	for i := 1; i < len(cycles); i++ {
		before[cycles[i].Unix()] = cycles[i-1]
	}
	for _, e := range events {
		n := uint64(downsOf(&e))
		from, ok := before[e.Time.Unix()]
		if !ok || n == 0 {
			continue // it may have been before
		}
		for _, k := range []portKey{{e.Node, e.Port}, {e.PeerNode, e.PeerPort}} {
			d.ports[k] = append(d.ports[k], audit.Downs{From: from, To: e.Time, Count: n})
		}
	}
	return d, nil
}

// cycleTimes returns the times of the cycles from since to until.
func (s *Store) cycleTimes(ctx context.Context, since, until time.Time) (list []time.Time, err error) {
	rows, err := s.db.QueryContext(ctx, "select t from cycle where t >= ? and t <= ? order by t", since.Unix(), until.Unix())
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var t int64
		if err := rows.Scan(&t); err != nil {
			return nil, s.failed(err)
		}
		list = append(list, at(t))
	}
	return list, s.failed(rows.Err())
}

package history

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// A cycle whose forwarding tables were read has a row of routes: a snapshot with the tables if they are not
// those of the cycle before, else the time of the row that has them. A cycle without a row has no tables.

// sameTables is the length of a row of routes that refers to another.
const sameTables = 8

// tables keeps the forwarding tables of f.
func (w *writer) tables(f *fabric.Fabric) error {
	now := onlyTables(f)
	if now == nil || w.err != nil {
		return w.err
	}
	was, at, err := w.lastTables()
	if err != nil {
		w.notes = append(w.notes, "forwarding tables are kept as a whole: "+err.Error())
	}
	if equalTables(was, now) {
		w.insert(tableRoutes, w.t, binary.BigEndian.AppendUint64(nil, uint64(at)))
		return nil
	}
	var data bytes.Buffer
	if err := format.WriteSnapshot(&data, now); err != nil {
		return err
	}
	w.insert(tableRoutes, w.t, data.Bytes())
	w.after = append(w.after, func() { w.Recorder.routes, w.Recorder.routesT = now, w.t })
	return nil
}

// lastTables returns the forwarding tables that were kept last, and the time of their row; nil: none.
func (w *writer) lastTables() (*fabric.Fabric, int64, error) {
	if w.Recorder.routes != nil {
		return w.Recorder.routes, w.routesT, nil
	}
	rows := w.rows(tableRoutes, "t = (select max(t) from routes where length(data) > ?)", sameTables)
	if len(rows) == 0 {
		return nil, 0, nil
	}
	t := number(rows[0][0])
	data, _ := rows[0][1].([]byte)
	f, err := format.ReadSnapshot(bytes.NewReader(data), "forwarding tables of "+timeText(t))
	if err != nil {
		return nil, 0, err
	}
	w.Recorder.routes, w.routesT = f, t
	return f, t, nil
}

// onlyTables returns f with its forwarding tables alone; nil without any.
func onlyTables(f *fabric.Fabric) *fabric.Fabric {
	if !f.HasLFTs() {
		return nil
	}
	rows := make([][]byte, len(f.Nodes()))
	for id := range f.Nodes() {
		rows[id] = f.Nodes()[id].LFT()
	}
	return f.Bare().With(fabric.Reading{LFTs: rows})
}

// equalTables reports whether two fabrics have the same forwarding tables, by GUID.
func equalTables(a, b *fabric.Fabric) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := a.OfType(mad.NodeTypeSwitch), b.OfType(mad.NodeTypeSwitch)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		p, q := x[i].LFT(), y[i].LFT()
		if x[i].GUID() != y[i].GUID() || (p == nil) != (q == nil) || !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

// withTables returns f, the fabric of the cycle t, with the forwarding tables that were recorded then, if any.
func (s *Store) withTables(ctx context.Context, f *fabric.Fabric, t int64) (*fabric.Fabric, error) {
	data, err := s.routesAt(ctx, t)
	if len(data) == sameTables {
		t = int64(binary.BigEndian.Uint64(data))
		if data, err = s.routesAt(ctx, t); err == nil && len(data) <= sameTables {
			err = fmt.Errorf("%s: the history is damaged: no forwarding tables of %s", s.path, timeText(t))
		}
	}
	if err != nil || data == nil {
		return f, err
	}
	kept, err := format.ReadSnapshot(bytes.NewReader(data), fmt.Sprintf("%s: forwarding tables of %s", s.path, timeText(t)))
	if err != nil {
		return nil, err
	}
	rows := make([][]byte, len(f.Nodes()))
	switches := f.OfType(mad.NodeTypeSwitch)
	for k := range switches {
		n := &switches[k]
		same := f.NodeByGUID(n.GUID())
		for i, m := range kept.NodeByGUID(n.GUID()) { // of two nodes with one GUID, in their order
			if i < len(same) && same[i].ID() == n.ID() {
				rows[n.ID()] = m.LFT()
			}
		}
	}
	return f.With(fabric.Reading{LFTs: rows}), nil
}

// TablesTime returns the time of the last cycle until t whose forwarding tables were recorded; the zero
// time: none.
func (s *Store) TablesTime(ctx context.Context, t time.Time) (time.Time, error) {
	var last sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select max(t) from routes where t <= ?", t.Unix()).Scan(&last); err != nil || !last.Valid {
		return time.Time{}, s.failed(err)
	}
	return at(last.Int64), nil
}

// routesAt returns the row of routes of a time; nil: none.
func (s *Store) routesAt(ctx context.Context, t int64) ([]byte, error) {
	var data []byte
	err := s.db.QueryRowContext(ctx, "select data from routes where t = ? and length(data) <= ?", t, maxBlob).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return data, s.failed(err)
}

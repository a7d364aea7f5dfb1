package history

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exported are the files of Export, and the queries whose rows they have. Times are seconds since 1970.
var exported = []struct{ name, query string }{
	{"node", "select n.guid, n.type, n.t as first from node n order by n.id"},
	{"cycle", "select t, every, source, missing from cycle order by t"},
	{"event", `select e.t, e.kind, coalesce(coalesce(n.guid, m.guid), '') as guid, p.num as port, coalesce(o.guid, '') as peer_guid, q.num as peer_port, e.subject, e.was, e.now
		from event e left join node n on n.id = e.node left join port p on p.id = e.port left join node m on m.id = p.node
		left join port q on q.id = e.peer left join node o on o.id = q.node order by e.t, e.n`},
	{"link", `select n.guid, p.num as port, m.guid as peer_guid, q.num as peer_port, l.t as since, l.till as until from link l
		join port p on p.id = l.a join node n on n.id = p.node join port q on q.id = l.b join node m on m.id = q.node order by l.a, l.t`},
	{"cable", `select c.serial, c.part, n.guid, p.num as port, coalesce(m.guid, '') as peer_guid, q.num as peer_port, c.t as since, c.till as until from cable c
		join port p on p.id = c.a join node n on n.id = p.node left join port q on q.id = c.b left join node m on m.id = q.node order by c.serial, c.t, c.a`},
	{"errors_5m", "select e.t, n.guid, p.num as port, w.name as counter, e.n as count from err5 e join port p on p.id = e.port join node n on n.id = p.node join word w on w.kind = 'counter' and w.id = e.counter order by e.port, e.t, e.counter"},
	{"errors_hour", "select e.t, n.guid, p.num as port, w.name as counter, e.n as count, e.most from err60 e join port p on p.id = e.port join node n on n.id = p.node join word w on w.kind = 'counter' and w.id = e.counter order by e.port, e.t, e.counter"},
	{"errors_day", "select e.t, n.guid, p.num as port, w.name as counter, e.n as count, e.hours from err_day e join port p on p.id = e.port join node n on n.id = p.node join word w on w.kind = 'counter' and w.id = e.counter order by e.t, e.port, e.counter"},
	{"ber", "select b.t, n.guid, p.num as port, b.up_s, b.raw, b.effective, b.symbol, b.grade from ber b join port p on p.id = b.port join node n on n.id = p.node order by b.port, b.t"},
	{"finding", "select key, job, t as since, till as until, checked, severity, subject, message from finding order by t, key, job"},
	{"ack", "select pattern, t as since, until as expires, who, reason, till as until from ack order by t, pattern"},
	{"change", "select t, action, subject, who, outcome from change order by t, n"},
}

// Export writes the tables of the history as files of CSV into a new directory, samples with one row for
// each port and hour or day, in files by kind and month. text makes a text harmless that a program which
// reads the file could run. It returns the names of the files, and stops with ctx.
func (s *Store) Export(ctx context.Context, dir string, text func(string) string) (names []string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	x := &export{s, ctx, dir, text, nil}
	for _, e := range exported {
		if err := x.query(e.name, e.query); err != nil {
			return x.names, err
		}
	}
	kinds, err := s.words(ctx, "sample")
	if err != nil {
		return x.names, err
	}
	ids := map[string]int64{}
	for id, name := range kinds {
		ids[name] = id
	}
	ports, err := x.ports()
	if err != nil {
		return x.names, err
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" { // it becomes the name of a file
			return x.names, fmt.Errorf("%s: the history is damaged: kind of sample %q", s.path, name)
		}
		if err := x.samples(name, ids[name], ids[SampleMean], ports); err != nil {
			return x.names, err
		}
	}
	return x.names, nil
}

// export writes files.
type export struct {
	*Store
	ctx   context.Context
	dir   string
	text  func(string) string
	names []string
}

// create makes a file of CSV. It has its name once it is whole.
func (x *export) create(name string, write func(*csv.Writer) error) error {
	path := filepath.Join(x.dir, name+".csv")
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(path + ".new")
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<16)
	c := csv.NewWriter(b)
	if err := write(c); err != nil {
		return err
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	x.names = append(x.names, name+".csv")
	return os.Rename(path+".new", path)
}

func (x *export) query(name, query string) error {
	rows, err := x.db.QueryContext(x.ctx, query)
	if err != nil {
		return x.failed(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return x.failed(err)
	}
	return x.create(name, func(c *csv.Writer) error {
		c.Write(columns)
		row, to, line := make([]any, len(columns)), make([]any, len(columns)), make([]string, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		for rows.Next() {
			if err := rows.Scan(to...); err != nil {
				return x.failed(err)
			}
			for i, v := range row {
				line[i] = Cell(v, x.text)
			}
			if err := c.Write(line); err != nil {
				return err
			}
		}
		return x.failed(rows.Err())
	})
}

// Cell returns a value of a Table as text; text makes texts harmless.
func Cell(v any, text func(string) string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return text(v)
	case []byte:
		return hex.EncodeToString(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	return fmt.Sprint(v)
}

// ports returns the ends of ports by id.
func (x *export) ports() (map[int64][2]string, error) {
	ports := map[int64][2]string{}
	err := x.each(x.ctx, "select p.id, n.guid, p.num from port p join node n on n.id = p.node", nil, func(scan func(...any) error) error {
		var id, num int64
		var guid string
		err := scan(&id, &guid, &num)
		ports[id] = [2]string{x.text(guid), strconv.FormatInt(num, 10)}
		return err
	})
	return ports, err
}

// samples writes a kind of sample, a file for each month.
func (x *export) samples(what string, kind, mean int64, ports map[int64][2]string) error {
	var first, last sql.NullInt64
	for _, table := range []string{"day", "tile", "hour"} {
		var a, b sql.NullInt64
		if err := x.db.QueryRowContext(x.ctx, "select min(t), max(t) from "+table+" where kind = ?", kind).Scan(&a, &b); err != nil {
			return x.failed(err)
		}
		if a.Valid && (!first.Valid || a.Int64 < first.Int64) {
			first = a
		}
		if b.Valid && (!last.Valid || b.Int64 > last.Int64) {
			last = b
		}
	}
	if !first.Valid {
		return nil
	}
	month := at(first.Int64)
	month = time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, time.UTC)
	for ; !month.After(at(last.Int64)); month = month.AddDate(0, 1, 0) {
		rows := 0
		name := fmt.Sprintf("sample_%s_%s", what, month.Format("2006-01"))
		err := x.create(name, func(c *csv.Writer) error {
			c.Write([]string{"t", "seconds", "guid", "port", "value"})
			add := func(t int64, width int64, id int64, b byte) error {
				v := decodeSample(what, b)
				p, ok := ports[id]
				if math.IsNaN(v) || !ok {
					return nil
				}
				rows++
				return c.Write([]string{strconv.FormatInt(t, 10), strconv.FormatInt(width, 10), p[0], p[1], strconv.FormatFloat(v, 'g', 4, 64)})
			}
			return x.month(what, kind, mean, month.Unix(), month.AddDate(0, 1, 0).Unix(), add)
		})
		if err != nil {
			return err
		}
		if rows == 0 {
			x.names = x.names[:len(x.names)-1]
			os.Remove(filepath.Join(x.dir, name+".csv"))
		}
	}
	return nil
}

// month calls add for each sample of a month.
func (x *export) month(what string, kind, mean, from, to int64, add func(t, width, id int64, b byte) error) error {
	isMost := what == SampleMost
	blobs := func(query string, use func(t, block int64, data, mean []byte) error) error {
		return x.each(x.ctx, query, []any{mean, kind, from, to, maxBlob}, func(scan func(...any) error) error {
			var t, block int64
			var data, mean []byte
			if err := scan(&t, &block, &data, &mean); err != nil {
				return err
			}
			if err := use(t, block, data, mean); err != nil {
				return fmt.Errorf("%s: samples of %s: %w", x.path, timeText(t), err)
			}
			return nil
		})
	}
	days := map[[2]int64]bool{}
	err := blobs("select d.t, d.block, d.data, m.data from day d left join day m on m.t = d.t and m.block = d.block and m.kind = ? where d.kind = ? and d.t >= ? and d.t < ? and length(d.data) <= ? order by d.t, d.block", func(t, block int64, data, _ []byte) error {
		d, err := decodeDay(data)
		if err != nil {
			return err
		}
		days[[2]int64{t, block}] = true
		for i := range d {
			b := d[i][0]
			if isMost {
				b = d[i][1]
			}
			if err := add(t, daySeconds, block*tilePorts+int64(i), b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	tiles := map[int64]bool{}
	err = blobs("select d.t, d.block, d.data, m.data from tile d left join tile m on m.t = d.t and m.block = d.block and m.kind = ? where d.kind = ? and d.t >= ? and d.t < ? and length(d.data) <= ? order by d.t, d.block", func(t, block int64, data, mean []byte) error {
		if tiles[t] = true; days[[2]int64{t, block}] {
			return nil
		}
		d, err := decodeTile(data)
		if err != nil {
			return err
		}
		m := new(tile)
		if isMost {
			if m, err = decodeTile(mean); err != nil {
				return err
			}
		}
		for i := range d {
			for h, b := range d[i] {
				if isMost {
					b = mostByte(m[i][h], b)
				}
				if err := add(t+int64(h)*hourSeconds, hourSeconds, block*tilePorts+int64(i), b); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	width := int64(hourSeconds)
	if isDaily(what) {
		width = daySeconds
	}
	return blobs("select d.t, 0, d.data, m.data from hour d left join hour m on m.t = d.t and m.kind = ? where d.kind = ? and d.t >= ? and d.t < ? and length(d.data) <= ? order by d.t", func(t, _ int64, data, mean []byte) error {
		if width == hourSeconds && tiles[t-t%daySeconds] {
			return nil
		}
		list, err := decodeHour(data)
		if err != nil {
			return err
		}
		var means []byte
		if isMost {
			if means, err = decodeHour(mean); err != nil {
				return err
			}
		}
		for id, b := range list {
			if isMost {
				if id >= len(means) {
					break
				}
				b = mostByte(means[id], b)
			}
			if err := add(t, width, int64(id), b); err != nil {
				return err
			}
		}
		return nil
	})
}

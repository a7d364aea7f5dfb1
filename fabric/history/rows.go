package history

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
)

// table is a table of the schema.
type table struct {
	name    string
	columns []string
	key     []int // of its primary key
	time    int   // the column of the day whose sum has the row; -1: day 0
}

func newTable(name, columns, key, time string) *table {
	t := &table{name: name, columns: strings.Fields(columns)}
	for _, k := range strings.Fields(key) {
		t.key = append(t.key, slices.Index(t.columns, k))
	}
	t.time = slices.Index(t.columns, time)
	return t
}

// The tables whose rows have sums: all but checksum itself.
var (
	tableMeta     = newTable("meta", "key value", "key", "")
	tableNode     = newTable("node", "id guid type t", "id", "t")
	tablePort     = newTable("port", "id node num t", "id", "t")
	tableWord     = newTable("word", "kind id name", "kind id", "")
	tableCycle    = newTable("cycle", "t every source missing keyframe sum", "t", "t")
	tableKeyframe = newTable("keyframe", "t data", "t", "t")
	tableDelta    = newTable("delta", "t data", "t", "t")
	tableRoutes   = newTable("routes", "t data", "t", "t")
	tableEvent    = newTable("event", "t n kind node port peer subject was now", "t n", "t")
	tableLink     = newTable("link", "a b t till", "a t", "t")
	tableCable    = newTable("cable", "serial a b t till part", "serial a t", "t")
	tableErr5     = newTable("err5", "port t counter n", "port t counter", "t")
	tableErr60    = newTable("err60", "port t counter n most", "port t counter", "t")
	tableErrDay   = newTable("err_day", "t port counter hours n", "t port counter", "t")
	tableBER      = newTable("ber", "port t up_s raw effective symbol grade", "port t", "t")
	tableHour     = newTable("hour", "t kind data", "t kind", "t")
	tableTile     = newTable("tile", "t kind block data", "t kind block", "t")
	tableDay      = newTable("day", "t kind block data", "t kind block", "t")
	tableFinding  = newTable("finding", "key job t till checked severity node port subject message", "key job t", "t")
	tableAck      = newTable("ack", "pattern t until who reason till", "pattern t", "t")
	tableChange   = newTable("change", "t n action subject who outcome node port", "t n", "t")
	tablePending  = newTable("pending", "name t data", "name", "")
)

var tables = []*table{tableMeta, tableNode, tablePort, tableWord, tableCycle, tableKeyframe, tableDelta, tableRoutes, tableEvent, tableLink, tableCable,
	tableErr5, tableErr60, tableErrDay, tableBER, tableHour, tableTile, tableDay, tableFinding, tableAck, tableChange, tablePending}

// daySeconds are the seconds of a day, UTC.
const daySeconds = 24 * 60 * 60

// dayOf returns the begin of the day of a time.
func dayOf(t int64) int64 { return floor(t, daySeconds) }

func floor(t, step int64) int64 { return t - (t%step+step)%step }

// dayOf returns the day whose sum has a row.
func (t *table) dayOf(row []any) int64 {
	if t.time < 0 {
		return 0
	}
	when, _ := row[t.time].(int64)
	return dayOf(when)
}

// where is the condition of the primary key, and keyOf its values in a row.
func (t *table) where() string {
	var terms []string
	for _, k := range t.key {
		terms = append(terms, t.columns[k]+" = ?")
	}
	return strings.Join(terms, " and ")
}

func (t *table) keyOf(row []any) (key []any) {
	for _, k := range t.key {
		key = append(key, row[k])
	}
	return key
}

// hash returns the sum of a row: FNV-1a of its values, mixed. The sums of rows are added, so that their
// order has no effect, and a row can be taken away.
func (t *table) hash(row []any) uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.name))
	var b [9]byte
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			h.Write([]byte{'0'})
		case int64:
			b[0] = 'i'
			binary.LittleEndian.PutUint64(b[1:], uint64(v))
			h.Write(b[:])
		case float64:
			b[0] = 'f'
			binary.LittleEndian.PutUint64(b[1:], math.Float64bits(v))
			h.Write(b[:])
		case string:
			b[0] = 's'
			binary.LittleEndian.PutUint64(b[1:], uint64(len(v)))
			h.Write(b[:])
			io.WriteString(h, v)
		case []byte:
			b[0] = 'b'
			binary.LittleEndian.PutUint64(b[1:], uint64(len(v)))
			h.Write(b[:])
			h.Write(v)
		default:
			fmt.Fprintf(h, "%T %v", v, v)
		}
	}
	x := h.Sum64() // murmur3's end, since sums are added
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// total is the number of the rows of a table and day, and their sum.
type total struct{ n, sum int64 }

type totalKey struct {
	table *table
	day   int64
}

// batch writes rows in a transaction, with the sums of their tables and days. It keeps the first error.
type batch struct {
	ctx    context.Context
	tx     *sql.Tx
	err    error
	totals map[totalKey]total // what the transaction adds
	fresh  map[*table][][]any // rows to be inserted
	other  map[*table][][]any // rows to be replaced
	cycle  uint64             // sum of the rows of cycle and event
	// prepared are statements of the transaction that are used often, by text; nil: they are not kept.
	prepared map[string]*sql.Stmt
}

func newBatch(ctx context.Context, tx *sql.Tx) batch {
	return batch{ctx: ctx, tx: tx, totals: map[totalKey]total{}, fresh: map[*table][][]any{}, other: map[*table][][]any{}}
}

func (b *batch) exec(statement string, args ...any) {
	if b.err == nil {
		_, b.err = b.tx.ExecContext(b.ctx, statement, args...)
	}
}

// insert adds a row, whose values are nil, int64, float64, string or []byte. Rows are written when there
// are several, or by write.
func (b *batch) insert(t *table, row ...any) { b.put(t, nil, row) }

// put replaces a row by one of the same key; old is nil if the key is new.
func (b *batch) put(t *table, old, row []any) {
	if b.err != nil {
		return
	}
	k := totalKey{t, t.dayOf(row)}
	x := b.totals[k]
	h := t.hash(row)
	x.n++
	x.sum += int64(h)
	if t == tableEvent {
		b.cycle += h
	}
	to := b.fresh
	if old != nil {
		x.n--
		x.sum -= int64(t.hash(old))
		to = b.other
	}
	b.totals[k] = x
	if to[t] = append(to[t], row); len(to[t])*len(t.columns) >= maxParameters {
		b.flush(t)
	}
}

// maxParameters is how many values one statement has.
const maxParameters = 400

// flush writes the rows of a table.
func (b *batch) flush(t *table) {
	for _, x := range []struct {
		rows map[*table][][]any
		end  string
	}{{b.fresh, ""}, {b.other, t.replace()}} {
		rows := x.rows[t]
		x.rows[t] = nil
		for len(rows) > 0 {
			n := min(len(rows), max(1, maxParameters/len(t.columns)))
			args := make([]any, 0, n*len(t.columns))
			for _, row := range rows[:n] {
				args = append(args, row...)
			}
			one := "(?" + strings.Repeat(",?", len(t.columns)-1) + ")"
			text := "insert into " + t.name + "(" + strings.Join(t.columns, ",") + ") values " + one + strings.Repeat(","+one, n-1) + x.end
			if b.prepared != nil && n*len(t.columns) > maxParameters/2 {
				b.execPrepared(text, args)
			} else {
				b.exec(text, args...)
			}
			rows = rows[n:]
		}
	}
}

// execPrepared is exec of a statement that is used often.
func (b *batch) execPrepared(text string, args []any) {
	if b.err != nil {
		return
	}
	stmt := b.prepared[text]
	if stmt == nil {
		if stmt, b.err = b.tx.PrepareContext(b.ctx, text); b.err != nil {
			return
		}
		b.prepared[text] = stmt
	}
	_, b.err = stmt.ExecContext(b.ctx, args...)
}

// replace is the clause by which a row replaces one of its key.
func (t *table) replace() string {
	var keys, set []string
	for i, c := range t.columns {
		if slices.Contains(t.key, i) {
			keys = append(keys, c)
		} else {
			set = append(set, c+" = excluded."+c)
		}
	}
	return " on conflict(" + strings.Join(keys, ",") + ") do update set " + strings.Join(set, ", ")
}

// rows returns the rows of a table that meet a condition.
func (b *batch) rows(t *table, where string, args ...any) (list [][]any) {
	if b.flush(t); b.err != nil {
		return nil
	}
	b.err = eachRow(b.ctx, b.tx, t, where, args, func(row []any) error {
		list = append(list, row)
		return nil
	})
	return list
}

// update replaces the rows that meet a condition by what edit makes of them, which keeps their keys.
func (b *batch) update(t *table, edit func(row []any), where string, args ...any) {
	for _, old := range b.rows(t, where, args...) {
		row := slices.Clone(old)
		edit(row)
		b.put(t, old, row)
	}
}

// mark keeps when something was done last.
func (b *batch) mark(name string, t int64) {
	var old []any
	for _, row := range b.rows(tablePending, "name = ?", name) {
		old = row
	}
	b.put(tablePending, old, []any{name, t, []byte{}})
}

// drop removes the rows of a table of a day, with their sum.
func (b *batch) drop(t *table, day int64) {
	b.flush(t)
	b.exec("delete from "+t.name+" where "+t.columns[t.time]+" >= ? and "+t.columns[t.time]+" < ?", day, day+daySeconds)
	b.exec("delete from checksum where name = ? and day = ?", t.name, day)
	delete(b.totals, totalKey{t, day})
}

// remove removes a row.
func (b *batch) remove(t *table, row []any) {
	b.flush(t)
	k := totalKey{t, t.dayOf(row)}
	x := b.totals[k]
	x.n--
	x.sum -= int64(t.hash(row))
	b.totals[k] = x
	b.exec("delete from "+t.name+" where "+t.where(), t.keyOf(row)...)
}

// write writes all rows that are not written yet, and the sums.
func (b *batch) write() error {
	for _, t := range tables {
		b.flush(t)
	}
	for _, t := range tables {
		for k, x := range b.totals {
			if k.table != t || b.err != nil {
				continue
			}
			var was total
			err := b.tx.QueryRowContext(b.ctx, "select n, sum from checksum where name = ? and day = ?", t.name, k.day).Scan(&was.n, &was.sum)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				b.err = err
			}
			b.exec("insert into checksum(name, day, n, sum) values(?, ?, ?, ?) on conflict(name, day) do update set n = excluded.n, sum = excluded.sum", t.name, k.day, was.n+x.n, was.sum+x.sum)
		}
	}
	clear(b.totals)
	return b.err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRow calls f with the rows of a table that meet a condition.
func eachRow(ctx context.Context, q querier, t *table, where string, args []any, f func(row []any) error) error {
	query := "select " + strings.Join(t.columns, ",") + " from " + t.name
	if where != "" {
		query += " where " + where
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	to := make([]any, len(t.columns))
	for rows.Next() {
		row := make([]any, len(t.columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

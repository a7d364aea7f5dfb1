package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Replica is a copy in PostgreSQL of a history that a recorder of this machine writes, and follows it: Sync
// copies what has changed since. The file stays the original, to which audits and other commands contribute,
// so that a server that is away loses nothing. A Replica is not safe for concurrent use.
type Replica struct {
	path    string
	address *serverAddress
	db      *sql.DB          // nil: not connected
	lock    *serverLock      // for one process that fills the history there
	has     map[sumKey]total // what the server has, by table and day
	synced  int64            // the last cycle there; 0: unknown
}

// sumKey identifies the rows of a table and day.
type sumKey struct {
	table string
	day   int64
}

// CheckServer returns an error if the address of a database of PostgreSQL is invalid. Errors do not show
// passwords.
func CheckServer(address string) error {
	_, err := parseServer(address)
	return err
}

// NewReplica returns the copy at an address of PostgreSQL of the history at path. It does not connect.
func NewReplica(path, address string) (*Replica, error) {
	a, err := parseServer(address)
	if err != nil {
		return nil, err
	}
	return &Replica{path: path, address: a}, nil
}

// Sync copies what has changed since the last Sync: all of it, in one transaction, or nothing. After an error
// the next Sync connects again.
func (r *Replica) Sync(ctx context.Context) (err error) {
	s, err := Open(ctx, r.path)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.db == nil {
		if err := r.connect(ctx, s); err != nil {
			return err
		}
	}
	if err := r.follow(ctx, s); err != nil {
		r.Close()
		return err
	}
	return nil
}

// Close ends the connection, and the lock with it.
func (r *Replica) Close() {
	if r.db != nil {
		r.lock.Release()
		r.db.Close()
	}
	r.db, r.lock, r.has, r.synced = nil, nil, nil, 0
}

// connect takes the lock of the history on the server, makes it unless it exists, and reads what it has.
func (r *Replica) connect(ctx context.Context, s *Store) (err error) {
	a := *r.address
	subnet, err := s.meta(ctx, "subnet")
	if err != nil {
		return err
	}
	if a.subnet != "" && a.subnet != subnet {
		return fmt.Errorf("%s: the history is of subnet %s, not %s; --subnet NAME gives it another name", a.name, subnet, a.subnet)
	}
	a.subnet = subnet
	db := a.open(serverSchema(subnet), false)
	lock, err := lockServer(ctx, db, &a)
	if err != nil {
		db.Close()
		return err
	}
	r.db, r.lock, r.has = db, lock, map[sumKey]total{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := createServer(ctx, db, &a); err != nil {
		return err
	}
	there := &Store{db: db, path: a.name}
	created, err := there.meta(ctx, "created")
	switch {
	case errors.Is(err, sql.ErrNoRows): // it is new
		return nil
	case err != nil:
		return err
	}
	if err := there.checkSchema(ctx); err != nil {
		return err
	}
	own, err := s.meta(ctx, "created")
	if err != nil {
		return err
	}
	if own != created {
		return fmt.Errorf("%s: has another history of subnet %s, begun at %s, and %s was begun at %s; give this one a name by --subnet, or rename the schema %s there", a.name, subnet, created, s.path, own, serverSchema(subnet))
	}
	r.has, err = sums(ctx, db)
	return a.failed(err)
}

// sums returns the sums of tables and days of a history.
func sums(ctx context.Context, db querier) (map[sumKey]total, error) {
	rows, err := db.QueryContext(ctx, "select name, day, n, sum from checksum")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := map[sumKey]total{}
	for rows.Next() {
		var k sumKey
		var x total
		if err := rows.Scan(&k.table, &k.day, &x.n, &x.sum); err != nil {
			return nil, err
		}
		list[k] = x
	}
	return list, rows.Err()
}

// follow copies the tables and days whose sums differ.
func (r *Replica) follow(ctx context.Context, s *Store) error {
	from, err := s.db.BeginTx(ctx, &sql.TxOptions{}) // which sees one state of the history
	if err != nil {
		return s.failed(err)
	}
	defer from.Rollback()
	want, err := sums(ctx, from)
	if err != nil {
		return s.failed(err)
	}
	var last sql.NullInt64
	if err := from.QueryRowContext(ctx, "select max(t) from cycle").Scan(&last); err != nil {
		return s.failed(err)
	}
	c, err := r.db.Conn(ctx)
	if err != nil {
		return r.address.failed(err)
	}
	defer c.Close()
	err = c.Raw(func(x any) error {
		tx, err := x.(*serverConn).Conn.Conn().Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		for _, t := range tables {
			if t == tablePending { // of the recorder and of audits on this machine
				continue
			}
			for k, x := range want {
				if k.table == t.name && r.has[k] != x {
					if err := r.replace(ctx, from, tx, t, k, x); err != nil {
						return fmt.Errorf("%s: %w", t.name, err)
					}
				}
			}
			for k := range r.has {
				if _, ok := want[k]; k.table == t.name && !ok { // they were too old
					if err := dropDay(ctx, tx, t, k); err != nil {
						return fmt.Errorf("%s: %w", t.name, err)
					}
				}
			}
		}
		return tx.Commit(ctx)
	})
	if err != nil {
		return r.address.failed(err)
	}
	r.has, r.synced = want, last.Int64
	return nil
}

// replace copies the rows of a table and day: those since the hour of the last Sync and, if the sum shows
// that others have changed too, all.
func (r *Replica) replace(ctx context.Context, from *sql.Tx, tx pgx.Tx, t *table, k sumKey, want total) error {
	begin := int64(0)
	if t.time >= 0 {
		begin = k.day
		if cut := floor(r.synced, hourSeconds); r.synced > 0 && cut > k.day && cut < k.day+daySeconds {
			begin = cut
		}
	}
	removed, err := removeRows(ctx, tx, t, k, begin)
	if err != nil {
		return err
	}
	added, err := copyRows(ctx, from, tx, t, k, begin)
	if err != nil {
		return err
	}
	was := r.has[k]
	if now := (total{was.n - removed.n + added.n, was.sum - removed.sum + added.sum}); now != want && t.time >= 0 && begin > k.day {
		if _, err := removeRows(ctx, tx, t, k, k.day); err != nil {
			return err
		}
		if _, err := copyRows(ctx, from, tx, t, k, k.day); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "insert into checksum(name, day, n, sum) values($1, $2, $3, $4) on conflict(name, day) do update set n = excluded.n, sum = excluded.sum", t.name, k.day, want.n, want.sum)
	return err
}

// dayWhere is the condition of the rows of a day from begin on, with the numbers of a parameter or two.
func (t *table) dayWhere(k sumKey, begin int64) string {
	if t.time < 0 {
		return "1 = 1"
	}
	column := t.columns[t.time]
	return column + " >= " + strconv.FormatInt(begin, 10) + " and " + column + " < " + strconv.FormatInt(k.day+daySeconds, 10)
}

// removeRows removes the rows of a day from begin on, and returns their sum.
func removeRows(ctx context.Context, tx pgx.Tx, t *table, k sumKey, begin int64) (sum total, err error) {
	rows, err := tx.Query(ctx, "delete from "+t.name+" where "+t.dayWhere(k, begin)+" returning "+strings.Join(t.columns, ","))
	if err != nil {
		return sum, err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return sum, err
		}
		sum.n++
		sum.sum += int64(t.hash(row))
	}
	return sum, rows.Err()
}

// copyRows copies the rows of a day from begin on, and returns their sum.
func copyRows(ctx context.Context, from *sql.Tx, tx pgx.Tx, t *table, k sumKey, begin int64) (sum total, err error) {
	rows, err := from.QueryContext(ctx, "select "+strings.Join(t.columns, ",")+" from "+t.name+" where "+t.dayWhere(k, begin))
	if err != nil {
		return sum, err
	}
	defer rows.Close()
	source := &copySource{rows: rows, columns: t.columns, each: func(row []any) {
		sum.n++
		sum.sum += int64(t.hash(row))
	}}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, source)
	return sum, err
}

// dropDay removes the rows of a day, and their sum.
func dropDay(ctx context.Context, tx pgx.Tx, t *table, k sumKey) error {
	if _, err := tx.Exec(ctx, "delete from "+t.name+" where "+t.dayWhere(k, k.day)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "delete from checksum where name = $1 and day = $2", t.name, k.day)
	return err
}

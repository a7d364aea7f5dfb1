package history

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// PostgreSQL. A history has a schema of its own in a database, named after the subnet, with the tables of
// schema.go. Views over the histories of all subnets are in the schema serverViews. The address is
// postgres://USER@HOST:PORT/DATABASE?PARAMETERS#SUBNET; a password comes from PGPASSFILE or the file
// ~/.pgpass, never from the address.
const (
	serverPrefix = "fabsh_"
	serverViews  = "fabsh_all"
)

// IsServer reports whether a path is the address of a database of PostgreSQL.
func IsServer(path string) bool {
	return strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://")
}

// isServer reports whether the history is in PostgreSQL.
func (s *Store) isServer() bool { return IsServer(s.path) }

// serverAddress is a database, and a subnet in it; "": the only one.
type serverAddress struct {
	config *pgx.ConnConfig
	subnet string
	name   string // for messages, without secrets
}

// parseServer reads an address. Errors do not show it.
func parseServer(address string) (*serverAddress, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("postgres: the address is invalid; want postgres://USER@HOST:PORT/DATABASE")
	}
	a := &serverAddress{subnet: u.Fragment}
	if _, has := u.User.Password(); has || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return nil, errors.New("postgres: the address has a password, which others can see in the list of processes; put it into the file of PGPASSFILE (mode 0600), or ~/.pgpass")
	}
	u.Fragment = ""
	a.name = u.Redacted()
	if a.config, err = pgx.ParseConfig(u.String()); err != nil {
		return nil, fmt.Errorf("%s: the address is invalid", a.name)
	}
	if a.config.ConnectTimeout == 0 {
		a.config.ConnectTimeout = 10 * time.Second
	}
	return a, nil
}

// serverSchema returns the name of the schema of a subnet: identifiers have at most 63 bytes.
func serverSchema(subnet string) string {
	name := serverPrefix + subnet
	if len(name) > 60 {
		h := fnv.New64a()
		h.Write([]byte(subnet))
		name = name[:40] + "_" + strconv.FormatUint(h.Sum64(), 16)
	}
	return name
}

// open returns the database, with a schema as search_path.
func (a *serverAddress) open(schema string, readOnly bool) *sql.DB {
	c := a.config.Copy()
	c.RuntimeParams["application_name"] = "fabsh"
	c.RuntimeParams["client_encoding"] = "UTF8"
	c.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	if readOnly {
		c.RuntimeParams["default_transaction_read_only"] = "on"
	}
	db := sql.OpenDB(serverConnector{stdlib.GetConnector(*c)})
	db.SetMaxOpenConns(8)
	return db
}

// failed removes what an error of the driver says about the connection besides the cause.
func (a *serverAddress) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// Subnets returns the subnets that have a history at an address of PostgreSQL, sorted.
func Subnets(ctx context.Context, address string) ([]string, error) {
	a, err := parseServer(address)
	if err != nil {
		return nil, err
	}
	db := a.open("pg_catalog", true)
	defer db.Close()
	return a.subnets(ctx, db)
}

func (a *serverAddress) subnets(ctx context.Context, db *sql.DB) (list []string, err error) {
	s := &Store{db: db, path: a.name, gapsOf: new(gapMemo)}
	var schemas []string
	err = s.each(ctx, "select n.nspname from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relname = 'meta' where n.nspname like ? order by 1", []any{strings.ReplaceAll(serverPrefix, "_", `\_`) + "%"}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		if name != serverViews {
			schemas = append(schemas, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range schemas {
		var subnet string
		err := db.QueryRowContext(ctx, "select value from "+pgx.Identifier{name, "meta"}.Sanitize()+" where key = 'subnet'").Scan(&subnet)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, a.failed(err)
		}
		list = append(list, subnet)
	}
	slices.Sort(list)
	return list, nil
}

// openServer opens a history for questions.
func openServer(ctx context.Context, address string) (*Store, error) {
	a, err := parseServer(address)
	if err != nil {
		return nil, err
	}
	if a.subnet == "" {
		db := a.open("pg_catalog", true)
		list, err := a.subnets(ctx, db)
		db.Close()
		switch {
		case err != nil:
			return nil, err
		case len(list) == 0:
			return nil, fmt.Errorf("%s: %w", a.name, ErrNone)
		case len(list) > 1:
			return nil, fmt.Errorf("%s has histories of %d subnets: name one of %s by --subnet", a.name, len(list), strings.Join(list, ", "))
		}
		a.subnet = list[0]
	}
	s := &Store{db: a.open(serverSchema(a.subnet), true), path: a.name, gapsOf: new(gapMemo)}
	var n int
	err = s.db.QueryRowContext(ctx, "select count(*) from pg_namespace where nspname = ?", serverSchema(a.subnet)).Scan(&n)
	switch {
	case err != nil:
		err = a.failed(err)
	case n == 0:
		err = fmt.Errorf("%s: subnet %s: %w", a.name, a.subnet, ErrNone)
	default:
		err = s.checkSchema(ctx)
	}
	if err != nil {
		s.db.Close()
		return nil, err
	}
	return s, nil
}

// serverLock is the advisory lock of the process that fills a history.
type serverLock struct{ conn *sql.Conn }

// lockServer takes the lock of a subnet: until its connection ends.
func lockServer(ctx context.Context, db *sql.DB, a *serverAddress) (*serverLock, error) {
	h := fnv.New64a()
	h.Write([]byte(serverSchema(a.subnet)))
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, a.failed(err)
	}
	var locked bool
	if err := c.QueryRowContext(ctx, "select pg_try_advisory_lock(?)", int64(h.Sum64())).Scan(&locked); err != nil || !locked {
		c.Close()
		if err == nil {
			err = fmt.Errorf("subnet %s: another process fills this history", a.subnet)
		}
		return nil, a.failed(err)
	}
	return &serverLock{c}, nil
}

// releaseTime is how long the server may take to release a lock; at the latest it does when it sees that the
// connection has ended.
const releaseTime = time.Second

// Release releases the lock, and ends its connection: the next process need not wait until the server sees that.
func (l *serverLock) Release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	// An error means that the server is away, and so is the lock.
	_, _ = l.conn.ExecContext(ctx, "select pg_advisory_unlock_all()")
	l.conn.Raw(func(any) error { return driver.ErrBadConn }) // not back into the pool
	l.conn.Close()
}

// createServer makes the schema of a subnet, unless it exists, and the views over all.
func createServer(ctx context.Context, db *sql.DB, a *serverAddress) error {
	schemaName := serverSchema(a.subnet)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return a.failed(err)
	}
	defer tx.Rollback()
	// One at a time makes schemas and views.
	if _, err := tx.ExecContext(ctx, "select pg_advisory_xact_lock(?)", int64(applicationID)); err != nil {
		return a.failed(err)
	}
	var n int
	if err := tx.QueryRowContext(ctx, "select count(*) from pg_namespace where nspname = ?", schemaName).Scan(&n); err != nil {
		return a.failed(err)
	}
	if n > 0 {
		return nil
	}
	statements := append([]string{"create schema " + pgx.Identifier{schemaName}.Sanitize()}, schema...)
	statements = append(statements, "alter table port alter constraint port_node_fkey deferrable initially deferred") // Replica replaces rows in any order
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return a.failed(err)
		}
	}
	if err := viewsOverAll(ctx, tx); err != nil {
		return a.failed(err)
	}
	return a.failed(tx.Commit())
}

// viewsOverAll makes a view for each table, over the schemas of all subnets of this version, with a
// column subnet.
func viewsOverAll(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "select n.nspname, c.relname from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relkind = 'r' where n.nspname like ? order by 2, 1", strings.ReplaceAll(serverPrefix, "_", `\_`)+"%")
	if err != nil {
		return err
	}
	of, order := map[string][]string{}, []string(nil)
	for rows.Next() {
		var schema, table string
		if err := rows.Scan(&schema, &table); err != nil {
			rows.Close()
			return err
		}
		if of[table] == nil {
			order = append(order, table)
		}
		of[table] = append(of[table], schema)
	}
	if rows.Close(); rows.Err() != nil {
		return rows.Err()
	}
	views := pgx.Identifier{serverViews}.Sanitize()
	if _, err := tx.ExecContext(ctx, "create schema if not exists "+views); err != nil {
		return err
	}
	for _, table := range order {
		var parts []string
		for _, schema := range of[table] {
			parts = append(parts, fmt.Sprintf("select (select value from %s where key = 'subnet') as subnet, * from %s", pgx.Identifier{schema, "meta"}.Sanitize(), pgx.Identifier{schema, table}.Sanitize()))
		}
		view := pgx.Identifier{serverViews, table}.Sanitize()
		for _, statement := range []string{"drop view if exists " + view, "create view " + view + " as " + strings.Join(parts, " union all ")} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyToServer copies the history into a new schema, by COPY, all of it or nothing.
func (s *Store) copyToServer(ctx context.Context, address string) error {
	if s.isServer() {
		return errors.New("copy from PostgreSQL to PostgreSQL: use pg_dump --schema")
	}
	a, err := parseServer(address)
	if err != nil {
		return err
	}
	subnet, err := s.meta(ctx, "subnet")
	if err != nil {
		return err
	}
	if a.subnet == "" {
		a.subnet = subnet
	}
	list, err := Subnets(ctx, address)
	if err != nil {
		return err
	}
	if slices.Contains(list, a.subnet) {
		return fmt.Errorf("%s: the history of subnet %s exists; name another by #NAME at the end of the address", a.name, a.subnet)
	}
	db := a.open(serverSchema(a.subnet), false)
	defer db.Close()
	lock, err := lockServer(ctx, db, a)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := createServer(ctx, db, a); err != nil {
		return err
	}
	err = s.copyTables(ctx, db, a)
	if err == nil && a.subnet != subnet {
		copied := &Store{db: db, path: a.name}
		err = copied.inBatch(ctx, func(b *batch) error {
			b.put(tableMeta, []any{"subnet", subnet}, []any{"subnet", a.subnet})
			return nil
		})
	}
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		a.dropSchema(clean, db)
		return err
	}
	return nil
}

// dropSchema removes a schema that was not filled.
func (a *serverAddress) dropSchema(ctx context.Context, db *sql.DB) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "select pg_advisory_xact_lock(?)", int64(applicationID)); err != nil {
		return
	}
	if _, err := tx.ExecContext(ctx, "drop schema "+pgx.Identifier{serverSchema(a.subnet)}.Sanitize()+" cascade"); err != nil {
		return
	}
	if viewsOverAll(ctx, tx) == nil {
		tx.Commit()
	}
}

// copyTables fills the tables of a schema, in one transaction.
func (s *Store) copyTables(ctx context.Context, db *sql.DB, a *serverAddress) error {
	from, err := s.db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return s.failed(err)
	}
	defer from.Rollback()
	c, err := db.Conn(ctx)
	if err != nil {
		return a.failed(err)
	}
	defer c.Close()
	return c.Raw(func(x any) error {
		conn := x.(*serverConn).Conn.Conn()
		tx, err := conn.Begin(ctx)
		if err != nil {
			return a.failed(err)
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		for _, table := range tableNames() {
			rows, err := from.QueryContext(ctx, "select * from "+table)
			if err != nil {
				return s.failed(err)
			}
			source := &copySource{rows: rows}
			if source.columns, err = rows.Columns(); err == nil {
				_, err = tx.CopyFrom(ctx, pgx.Identifier{serverSchema(a.subnet), table}, source.columns, source)
			}
			rows.Close()
			if err != nil {
				return a.failed(fmt.Errorf("%s: %w", table, err))
			}
		}
		if _, err := tx.Exec(ctx, "analyze"); err != nil && ctx.Err() != nil {
			return a.failed(err)
		}
		return a.failed(tx.Commit(ctx))
	})
}

// tableNames returns the tables of the schema, those that others refer to first.
func tableNames() (names []string) {
	for _, statement := range schema {
		if rest, ok := strings.CutPrefix(statement, "create table "); ok {
			name, _, _ := strings.Cut(rest, "(")
			names = append(names, name)
		}
	}
	return names
}

// copySource has the rows of a table for COPY.
type copySource struct {
	rows    *sql.Rows
	columns []string
	each    func(row []any) // if not nil, is called with each row
	values  []any
	err     error
}

func (c *copySource) Next() bool {
	if c.err != nil || !c.rows.Next() {
		return false
	}
	c.values = make([]any, len(c.columns))
	to := make([]any, len(c.columns))
	for i := range to {
		to[i] = &c.values[i]
	}
	if c.err = c.rows.Scan(to...); c.err != nil {
		return false
	}
	if c.each != nil {
		c.each(c.values)
	}
	for i, v := range c.values {
		if text, ok := v.(string); ok {
			c.values[i] = serverText(text)
		}
	}
	return true
}

func (c *copySource) Values() ([]any, error) { return c.values, nil }
func (c *copySource) Err() error             { return errors.Join(c.err, c.rows.Err()) }

// serverText returns a text that PostgreSQL accepts: UTF-8 without zero bytes.
func serverText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// serverConnector makes connections whose statements have ? for parameters, as those of SQLite.
type serverConnector struct{ driver.Connector }

func (c serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	x, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &serverConn{x.(*stdlib.Conn)}, nil
}

// serverConn is a connection.
type serverConn struct{ *stdlib.Conn }

func (c *serverConn) Prepare(query string) (driver.Stmt, error) {
	return c.Conn.Prepare(numbered(query))
}

func (c *serverConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.PrepareContext(ctx, numbered(query))
}

func (c *serverConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, numbered(query), safeArgs(args))
}

func (c *serverConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, numbered(query), safeArgs(args))
}

func safeArgs(args []driver.NamedValue) []driver.NamedValue {
	for i, a := range args {
		if text, ok := a.Value.(string); ok {
			args[i].Value = serverText(text)
		}
	}
	return args
}

// numbered returns a statement with $1, $2 ... in place of each ? outside of texts and quoted names.
func numbered(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	n, quote := 0, rune(0)
	for _, r := range query {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '?':
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

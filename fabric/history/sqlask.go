package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"modernc.org/sqlite"
)

// Table is the answer of a query. Cells are nil, int64, float64, string, []byte, bool or time.Time.
type Table struct {
	Columns []string
	Rows    [][]any
	More    bool // there are more rows than the limit
}

// Limits of a query: bytes of a value, and tables that are attached (SQLITE_LIMIT_LENGTH, _ATTACHED).
const (
	maxValue      = 64 << 20
	limitLength   = 0
	limitAttached = 7
)

// refused are words that a query must not have, besides those that the database refuses because it is
// open for reading.
var refused = []string{"attach", "detach", "pragma", "vacuum", "load_extension", "insert", "update", "delete", "replace", "create", "drop", "alter", "copy", "call", "do", "set", "lock", "listen", "notify", "begin", "commit", "rollback", "savepoint", "into"}

// Query runs one query that only reads, and returns at most limit rows. It ends with ctx.
func (s *Store) Query(ctx context.Context, query string, limit int) (*Table, error) {
	if err := checkQuery(query); err != nil {
		return nil, err
	}
	c, err := s.db.Conn(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	defer c.Close()
	if !s.isServer() {
		for id, value := range map[int]int{limitLength: maxValue, limitAttached: 0} {
			old, err := sqlite.Limit(c, id, value)
			if err != nil {
				return nil, s.failed(err)
			}
			defer sqlite.Limit(c, id, old)
		}
	}
	tx, err := c.BeginTx(ctx, &sql.TxOptions{ReadOnly: s.isServer()})
	if err != nil {
		return nil, s.failed(err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, s.queryFailed(ctx, err)
	}
	defer rows.Close()
	t := &Table{}
	if t.Columns, err = rows.Columns(); err != nil {
		return nil, s.queryFailed(ctx, err)
	}
	for rows.Next() {
		if len(t.Rows) == limit {
			t.More = true
			break
		}
		row, to := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, s.queryFailed(ctx, err)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := rows.Err(); err != nil && !t.More {
		return nil, s.queryFailed(ctx, err)
	}
	return t, nil
}

func (s *Store) queryFailed(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("%s: the query exceeded its time; narrow it, or give more by --time", s.path)
	}
	return s.failed(err)
}

// checkQuery returns an error unless the text is one query.
func checkQuery(query string) error {
	words, err := sqlWords(query)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return errors.New("empty query")
	}
	if first := words[0]; first != "select" && first != "with" && first != "values" && first != "explain" && first != "(" {
		return fmt.Errorf("%q is refused: only queries are run; begin with select, with or values", first)
	}
	for i, w := range words {
		if w == ";" && i < len(words)-1 {
			return errors.New("several statements are refused: give one query")
		}
		for _, r := range refused {
			if w == r && !(r == "replace" && i+1 < len(words) && words[i+1] == "(") {
				return fmt.Errorf("%q is refused: only queries are run; quote it if it is a name", w)
			}
		}
		if strings.HasPrefix(w, "pragma_") {
			return fmt.Errorf("%q is refused", w)
		}
	}
	return nil
}

// sqlWords returns the words and signs of a statement in lower case, without comments, texts and quoted
// names.
func sqlWords(text string) (words []string, err error) {
	r := []rune(text)
	for i := 0; i < len(r); {
		c := r[i]
		switch {
		case unicode.IsSpace(c):
			i++
		case c == 0:
			return nil, errors.New("the query has a zero byte")
		case c == '-' && i+1 < len(r) && r[i+1] == '-':
			for i < len(r) && r[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(r) && r[i+1] == '*':
			end := strings.Index(string(r[i+2:]), "*/")
			if end < 0 {
				return nil, errors.New("the query has a comment without an end")
			}
			i += 2 + len([]rune(string(r[i+2:])[:end])) + 2
		case c == '\'' || c == '"' || c == '`' || c == '[':
			end := c
			if c == '[' {
				end = ']'
			}
			j := i + 1
			for j < len(r) && r[j] != end {
				j++
			}
			if j == len(r) {
				return nil, fmt.Errorf("the query has a %c without an end", c)
			}
			if c != '\'' && strings.HasPrefix(strings.ToLower(string(r[i+1:j])), "pragma_") {
				return nil, errors.New("pragma is refused")
			}
			words = append(words, string(c))
			i = j + 1
		case unicode.IsLetter(c) || c == '_':
			j := i
			for j < len(r) && (unicode.IsLetter(r[j]) || unicode.IsDigit(r[j]) || r[j] == '_' || r[j] == '$') {
				j++
			}
			words = append(words, strings.ToLower(string(r[i:j])))
			i = j
		default:
			words = append(words, string(c))
			i++
		}
	}
	return words, nil
}

// QueryTime is how long a query may take unless more is given.
const QueryTime = 30 * time.Second

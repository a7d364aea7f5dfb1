package history

import (
	"fmt"
	"testing"
)

// Limit limits the file to a number of pages, as a full disk does.
func (s *Store) Limit(t *testing.T, pages int) {
	s.db.SetMaxOpenConns(1) // a connection has the limit
	if _, err := s.db.Exec(fmt.Sprintf("pragma max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

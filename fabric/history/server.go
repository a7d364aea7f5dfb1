package history

// isServer reports whether the history is in PostgreSQL.
func (s *Store) isServer() bool { return false }

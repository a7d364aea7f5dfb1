package serve

// paths adds the pages about paths.
func (s *Site) paths(get func(pattern string, f func(*view) error)) {}

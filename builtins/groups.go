package builtins

// Headings in the overview.
const (
	GroupMAD   = "Management datagrams"
	GroupTable = "Whole tables"
	GroupPort  = "Links"
)

package datagrams

// Headings in the overview.
const (
	GroupMAD  = "Management datagrams"
	GroupPort = "Links"
)

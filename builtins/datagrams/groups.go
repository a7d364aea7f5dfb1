package datagrams

// Headings in the overview of builtins.
const (
	GroupMAD  = "Management datagrams" // requests of a class
	GroupPort = "Links"                // what changes the state of ports
)

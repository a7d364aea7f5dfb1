// Package builtins is a session: it assembles the framework (lang) and the
// vocabularies (records, topology, datagrams, routing) into all that a script
// can say, and runs scripts.
//
//	session.go      a session and what it stands on
//	predeclared.go  the global names
//	run.go entry.go load.go policy.go   scripts, their entry functions, modules, policies;
//	                library.go: what scripts load from @std//
//	help.go reference.go explain.go     help; REFERENCE.md; errors for people
//	audit.go auditrun.go auditcover.go auditrail.go   audits: loaded; run; what they asked; other rails; report.go: reports; shipped.go: shipped scripts
//	auditagain.go auditself.go   their second reading; what they say of the run, and keep;
//	                auditclock.go: their time on a simulated fabric
//	status.go       the exit status
//	command.go prompt.go   what commands written in Go, and the prompt, need of a session
//
// Tests of the vocabularies open a session, and so stand here.
//
// The values, by their type in Starlark:
//
//	fabric     *fabric.Fabric, an immutable snapshot
//	node       a switch, channel adapter or router of it
//	port       a port of a node
//	ports      a node's ports, by number
//	link       two ports
//	route      a directed route
//	PortInfo   (and each other attribute) a record: raw bytes, read by field
//	lft        a linear forwarding table
//	graph      a fabric as routing algorithms want it; hops are its distances
//	routes     the tables of all switches; a row is one of them
//	finding    what an audit found
//	verdict    (and path, congestion, ...) a result: named parts
//	table      rows and columns to show
//	subscription   events to come: each a record (notice) or a lost
//	sim        what can be done to a simulated fabric
//	error      what became of a target that failed; the only falsy one
//
// Identifiers are plain values: a LID is an int, a GUID or GID a canonical
// string, an enumerated field a word. Attributes never do I/O; functions and
// methods may. Nothing waits except through lang.Block.
package builtins

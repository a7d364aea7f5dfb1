// Package control lets programs of the user who serves a simulated subnet change it while
// it runs: fabsh -F ibsim:NAME calls methods of sim through it. It carries calls and their
// results, and knows no methods.
//
//	control.go  the messages
//	client.go   Client: the program that calls
//	server.go   Server: the one that serves the subnet
//	peer_linux.go, peer_other.go  the program at the other end
//
// A connection is a stream socket with an abstract name beside those of ibsim. A request and
// its reply are a line of JSON each.

package server

import (
	"encoding/json"
	"fmt"
)

// Version is that of the messages. A request of another version is refused.
const controlVersion = 1

// maxLine is the maximum size of a request or a reply, in bytes.
const maxLine = 1 << 20

// Peer is a program that calls.
type Peer struct {
	PID int `json:"pid"` // process ID, at the time it connected
	UID int `json:"uid"` // user ID
}

// request is a call of a method.
type request struct {
	Version int             `json:"version"`
	Method  string          `json:"method"`
	Args    json.RawMessage `json:"args"` // an object
}

// reply is its result, or why it failed.
type reply struct {
	Version int             `json:"version"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// socketName returns the name of the socket of a subnet that is served by that name. The @
// stands for a NUL: the name is abstract, and no file.
func socketName(name string) string { return "@" + name + ":control" }

// checkVersion returns an error if the other end has another version.
func checkVersion(version int) error {
	if version != controlVersion {
		return fmt.Errorf("version %d of the control of a simulated subnet, want %d; use the same fabsh at both ends", version, controlVersion)
	}
	return nil
}

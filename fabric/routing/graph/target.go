package graph

// Target is what a port of a switch leads to: a channel to another switch, a terminal,
// or nothing.
type Target int32

// NoTarget is that of a port that leads nowhere: a free port, or one whose link is down
// or left out.
const NoTarget Target = -1

// NoChannel stands for a missing channel.
const NoChannel = -1

// ToTerminal is the target of a port that leads to terminal t.
func ToTerminal(t int32) Target { return Target(-2 - t) }

// IsChannel reports whether t is a channel.
func (t Target) IsChannel() bool { return t >= 0 }

// Channel is the number of the channel, or less than 0 if t is not a channel.
func (t Target) Channel() int32 { return int32(t) }

// IsTerminal reports whether t is a terminal.
func (t Target) IsTerminal() bool { return t < NoTarget }

// Terminal is the number of the terminal that t is.
func (t Target) Terminal() int32 { return int32(-2 - t) }

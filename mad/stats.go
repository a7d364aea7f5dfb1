package mad

// Stats are an engine's counts since it began.
type Stats struct {
	Sent        uint64 // datagrams handed to the transport, retries and RMPP ACKs included
	Answered    uint64 // calls that got a response, whatever its status
	Retried     uint64 // requests sent again
	TimedOut    uint64 // calls that ended without an answer
	Late        uint64 // responses to calls that had timed out or been cancelled
	Duplicate   uint64 // further responses to calls that had been answered
	Foreign     uint64 // responses to nothing we asked
	Busy        uint64 // responses with status BUSY
	Undelivered uint64 // requests that the transport gave back
	Unsolicited uint64 // requests of others: traps, Reports
	Refused     uint64 // calls not sent: read-only, or not taken by the transport
	Cancelled   uint64 // calls ended by Cancel
}

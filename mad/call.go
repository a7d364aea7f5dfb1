package mad

import (
	"iter"
	"time"
)

// Call is one request and its answer. The caller owns it, buffer included,
// and lends it to the engine from Start until Complete; it may then be used
// again. A Call is usually embedded in what the caller keeps about it:
//
//	type portCall struct {
//		mad.Call
//		port *port
//	}
//	func (c *portCall) Complete(*mad.Call) { ... c.Err, c.Data() ... }
type Call struct {
	To Address
	// MAD is the request, written by PutSMP, PutGMP, PutSA or by hand; the
	// engine sets the transaction ID. After an answer it holds the response.
	MAD [Size]byte
	// Table is the data of a multi-packet (RMPP) response, all segments
	// joined, without headers; nil otherwise.
	Table []byte
	// Timeout of one attempt, and attempts after the first; 0 means the
	// engine's, negative Retries none.
	Timeout time.Duration
	Retries int
	// Notify is told, on one of the engine's goroutines, when the call has
	// ended. It must not block; it may Start calls. Nil: nobody is told.
	Notify Completer
	// Err is nil when MAD holds a response with status 0; otherwise an *Error.
	Err error
	// Attempts is how many times the request was sent.
	Attempts int
	// Elapsed is from Start to the end.
	Elapsed time.Duration

	callState // the engine's own
}

// Completer is told that a call has ended.
type Completer interface{ Complete(*Call) }

// CompleterFunc makes a Completer of a function.
type CompleterFunc func(*Call)

// Complete calls f.
func (f CompleterFunc) Complete(c *Call) { f(c) }

// Header is the base header of the request or response in c.
func (c *Call) Header() Header { return ParseHeader(c.MAD[:]) }

// Data is the attribute in c's MAD.
func (c *Call) Data() []byte { return c.MAD[Class(c.MAD[offClass]).DataOffset():] }

// Records iterates over the records of an SA answer, each at least size bytes
// long. The error says why the answer is not a whole number of records.
func (c *Call) Records(size int) (iter.Seq[[]byte], error) { return nil, nil }

type callState struct{}

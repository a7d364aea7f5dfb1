// Package lsp serves editors by the Language Server Protocol 3.16, over two streams. It
// never runs a script. Of the files, it reads the open documents' neighbours below the
// editor's workspace, the folders of -I, and the embedded modules.
//
//	server.go      Serve: the session, and the methods
//	stream.go      the connection: messages, and the errors of what is not one
//	request.go     requests in their order, those that take longer, and cancellation
//	document.go    open documents: texts, positions, files
//	outline.go     the names that a script defines
//	diagnostic.go  the findings of check, while a script is typed
//	complete.go    completion; hover.go: hover and the signatures of calls
//	definition.go  definitions, also those in modules
//	symbol.go      the outline of a document, and its format
package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// Server is what the server of an editor knows.
type Server struct {
	Interpreter *script.Interpreter
	Library     *help.Library
	// Modules is the directory in which embedded modules are written when an editor opens
	// a definition in one; empty: it cannot.
	Modules string
	Version string

	conn     jsonrpc2.Conn
	queue    chan *request
	waiting  atomic.Int32                            // messages that are not handled
	checking atomic.Pointer[context.CancelCauseFunc] // stops the check that runs; nil: none runs
	slot     chan struct{}                           // taken by the request that takes longer
	callsMu  sync.Mutex                              // guards calls
	calls    map[jsonrpc2.ID]*request                // without their responses

	mu      sync.Mutex // held by the method or the check that runs
	folders []string   // the workspace, absolute
	open    map[string]*document
	dirty   chan struct{} // a document has changed
	stopped bool          // the editor has requested shutdown
	end     func(error)   // ends the session; nil: as the protocol requires
}

// Serve serves the editor at in and out until it ends the session or closes in. The error
// is nil if the editor ended the session as the protocol requires.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.end = func(err error) { cancel(cmp.Or(err, errEnded)) }
	s.open, s.dirty = map[string]*document{}, make(chan struct{}, 1)
	s.Interpreter.Unsaved = map[string]string{}
	s.queue, s.slot, s.calls = make(chan *request, maxRequests), make(chan struct{}, 1), map[jsonrpc2.ID]*request{}
	s.conn = jsonrpc2.NewConn(newStream(in, out))
	s.conn.Go(ctx, s.receive)
	var running sync.WaitGroup
	running.Go(func() { s.check(ctx) })
	worked := make(chan struct{})
	running.Go(func() { s.work(ctx); close(worked) })
	defer running.Wait()
	defer in.Close()
	defer cancel(nil)
	select {
	case <-s.conn.Done():
		close(s.queue)
		<-worked // the messages before the end
	case <-ctx.Done():
	}
	switch err := context.Cause(ctx); {
	case err == errEnded:
		return nil
	case err != nil:
		return err
	case errors.Is(s.conn.Err(), io.EOF):
		return errors.New("lsp: the editor closed the connection without ending the session")
	}
	return fmt.Errorf("lsp: %w", s.conn.Err())
}

var errEnded = errors.New("the editor has ended the session")

// method answers a message.
type method func(s *Server, ctx context.Context, params json.RawMessage) (any, error)

// of returns the method that fn is, with its parameters decoded.
func of[P any](fn func(*Server, context.Context, *P) (any, error)) method {
	return func(s *Server, ctx context.Context, params json.RawMessage) (any, error) {
		p := new(P)
		if err := json.Unmarshal(params, p); err != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "invalid parameters: %v", err)
		}
		return fn(s, ctx, p)
	}
}

// methods are the methods of the protocol that the server has.
var methods = map[string]method{
	protocol.MethodInitialize:                         of((*Server).initialize),
	protocol.MethodInitialized:                        ignored,
	protocol.MethodShutdown:                           func(s *Server, _ context.Context, _ json.RawMessage) (any, error) { s.stopped = true; return nil, nil },
	protocol.MethodTextDocumentDidOpen:                of((*Server).didOpen),
	protocol.MethodTextDocumentDidChange:              of((*Server).didChange),
	protocol.MethodTextDocumentDidSave:                of((*Server).didSave),
	protocol.MethodTextDocumentDidClose:               of((*Server).didClose),
	protocol.MethodWorkspaceDidChangeWatchedFiles:     of((*Server).filesChanged),
	protocol.MethodWorkspaceDidChangeConfiguration:    ignored,
	protocol.MethodWorkspaceDidChangeWorkspaceFolders: of((*Server).foldersChanged),
	protocol.MethodTextDocumentCompletion:             of((*Server).completion),
	protocol.MethodTextDocumentHover:                  of((*Server).hover),
	protocol.MethodTextDocumentSignatureHelp:          of((*Server).signature),
	protocol.MethodTextDocumentDefinition:             of((*Server).definition),
	protocol.MethodTextDocumentDocumentSymbol:         of((*Server).symbols),
	protocol.MethodTextDocumentFormatting:             of((*Server).formatting),
	protocol.MethodSetTrace:                           ignored,
}

func ignored(*Server, context.Context, json.RawMessage) (any, error) { return nil, nil }

// handle handles a message.
func (s *Server) handle(ctx context.Context, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.Method()
	m, ok := methods[name]
	var result any
	var err error
	switch {
	case ctx.Err() != nil: // the session is being closed
		return
	case name == protocol.MethodExit && s.stopped:
		s.end(nil)
		return
	case name == protocol.MethodExit:
		s.end(errors.New("lsp: the editor ended the session without the request shutdown"))
		return
	case r.ctx.Err() != nil: // cancelled
	case !ok:
		err = jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "unsupported method %s", name)
	case name != protocol.MethodInitialize && s.folders == nil:
		err = jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "the first request must be initialize")
	case s.stopped:
		err = jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the editor has requested shutdown")
	default:
		err = lang.Protect("lsp "+name, func() (err error) { result, err = m(s, r.ctx, r.Params()); return err })
	}
	if rest, isLater := result.(later); isLater && err == nil {
		go s.finish(r, rest)
		return
	}
	s.answer(r, result, err)
}

// initializeParams are the parameters of initialize that the server uses. Those of the
// library have many that clients of later versions send otherwise.
type initializeParams struct {
	RootURI          string                     `json:"rootUri"`
	WorkspaceFolders []protocol.WorkspaceFolder `json:"workspaceFolders"`
}

func (s *Server) initialize(_ context.Context, p *initializeParams) (any, error) {
	s.folders = []string{}
	for _, f := range append(p.WorkspaceFolders, protocol.WorkspaceFolder{URI: p.RootURI}) {
		s.addFolder(f)
	}
	return &protocol.InitializeResult{
		Capabilities: protocol.ServerCapabilities{
			TextDocumentSync:           protocol.TextDocumentSyncOptions{OpenClose: true, Change: protocol.TextDocumentSyncKindFull, Save: &protocol.SaveOptions{}},
			CompletionProvider:         &protocol.CompletionOptions{TriggerCharacters: []string{".", `"`, "'", "/"}},
			HoverProvider:              true,
			SignatureHelpProvider:      &protocol.SignatureHelpOptions{TriggerCharacters: []string{"(", ","}},
			DefinitionProvider:         true,
			DocumentSymbolProvider:     true,
			DocumentFormattingProvider: true,
			Workspace: &protocol.ServerCapabilitiesWorkspace{
				WorkspaceFolders: &protocol.ServerCapabilitiesWorkspaceFolders{Supported: true, ChangeNotifications: true},
			},
		},
		ServerInfo: &protocol.ServerInfo{Name: "fabsh", Version: s.Version},
	}, nil
}

// addFolder adds a folder to the workspace.
func (s *Server) addFolder(f protocol.WorkspaceFolder) {
	if path := pathOf(f.URI); path != "" && !slices.Contains(s.folders, path) {
		s.folders = append(s.folders, path)
	}
}

func (s *Server) foldersChanged(ctx context.Context, p *protocol.DidChangeWorkspaceFoldersParams) (any, error) {
	for _, f := range p.Event.Removed {
		s.folders = slices.DeleteFunc(s.folders, func(path string) bool { return path == pathOf(f.URI) })
	}
	for _, f := range p.Event.Added {
		s.addFolder(f)
	}
	return s.filesChanged(ctx, nil)
}

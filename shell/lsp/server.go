// Package lsp serves editors by the Language Server Protocol 3.16, over two streams: findings,
// completion, hover, definitions, outline, format. It never runs a script. Of the files, it
// reads the neighbours of open documents below the editor's workspace, the folders of -I, and
// the embedded modules.
package lsp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	// Include are the directories of -I that are relative to the first folder of the workspace.
	Include []string

	conn     jsonrpc2.Conn
	queue    chan *request
	waiting  atomic.Int32                            // messages that are not handled
	checking atomic.Pointer[context.CancelCauseFunc] // stops the check that runs; nil: none runs
	slot     chan struct{}                           // taken by the request that takes longer
	callsMu  sync.Mutex                              // guards calls
	calls    map[jsonrpc2.ID]*request                // without their responses

	mu        sync.Mutex // held by the method or the check that runs
	folders   []string   // the workspace, absolute
	missing   []string   // directories of -I that do not exist
	markdown  bool       // the editor shows Markdown
	helpOnce  sync.Once
	helpURI   protocol.DocumentURI // of the page about findings; "": none
	helpLines map[string]int       // of the codes in it, from 1
	open      map[string]*document
	dirty     chan struct{} // a document has changed
	stopped   bool          // the editor has requested shutdown
	end       func(error)   // ends the session; nil: as the protocol requires
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
	protocol.MethodInitialized:                        of((*Server).initialized),
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
	protocol.MethodTextDocumentReferences:             of((*Server).references),
	protocol.MethodTextDocumentDocumentHighlight:      of((*Server).highlight),
	protocol.MethodTextDocumentPrepareRename:          of((*Server).prepareRename),
	protocol.MethodTextDocumentRename:                 of((*Server).rename),
	protocol.MethodWorkspaceSymbol:                    of((*Server).workspaceSymbols),
	protocol.MethodTextDocumentFoldingRange:           of((*Server).folding),
	protocol.MethodSemanticTokensFull:                 of((*Server).semanticTokens),
	protocol.MethodTextDocumentCodeAction:             of((*Server).codeActions),
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

// initializeParams are the parameters of initialize that the server uses. The parameters of the
// library have many that clients of later versions send otherwise.
type initializeParams struct {
	RootURI          string                     `json:"rootUri"`
	WorkspaceFolders []protocol.WorkspaceFolder `json:"workspaceFolders"`
	Capabilities     struct {
		TextDocument struct {
			Hover struct {
				ContentFormat []protocol.MarkupKind `json:"contentFormat"`
			} `json:"hover"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

func (s *Server) initialize(_ context.Context, p *initializeParams) (any, error) {
	s.folders = []string{}
	for _, f := range append(p.WorkspaceFolders, protocol.WorkspaceFolder{URI: p.RootURI}) {
		s.addFolder(f)
	}
	s.markdown = slices.Contains(p.Capabilities.TextDocument.Hover.ContentFormat, protocol.Markdown)
	s.addIncluded()
	return &protocol.InitializeResult{
		Capabilities: protocol.ServerCapabilities{
			TextDocumentSync:           protocol.TextDocumentSyncOptions{OpenClose: true, Change: protocol.TextDocumentSyncKindIncremental, Save: &protocol.SaveOptions{}},
			CompletionProvider:         &protocol.CompletionOptions{TriggerCharacters: []string{".", `"`, "'", "/"}},
			HoverProvider:              true,
			SignatureHelpProvider:      &protocol.SignatureHelpOptions{TriggerCharacters: []string{"(", ","}},
			DefinitionProvider:         true,
			DocumentSymbolProvider:     true,
			DocumentFormattingProvider: true,
			ReferencesProvider:         true,
			DocumentHighlightProvider:  true,
			RenameProvider:             &protocol.RenameOptions{PrepareProvider: true},
			WorkspaceSymbolProvider:    true,
			FoldingRangeProvider:       true,
			CodeActionProvider:         &protocol.CodeActionOptions{CodeActionKinds: []protocol.CodeActionKind{protocol.QuickFix}},
			SemanticTokensProvider: map[string]any{
				"legend": map[string]any{"tokenTypes": tokenTypes, "tokenModifiers": []string{}}, "full": true,
			},
			Workspace: &protocol.ServerCapabilitiesWorkspace{
				WorkspaceFolders: &protocol.ServerCapabilitiesWorkspaceFolders{Supported: true, ChangeNotifications: true},
			},
		},
		ServerInfo: &protocol.ServerInfo{Name: "fabsh", Version: s.Version},
	}, nil
}

// addIncluded lets scripts load from the directories of -I.
func (s *Server) addIncluded() {
	for _, dir := range s.Include {
		if !filepath.IsAbs(dir) && len(s.folders) > 0 {
			dir = filepath.Join(s.folders[0], dir)
		}
		if err := s.Interpreter.Runtime.Files.Include(dir); err != nil {
			s.missing = append(s.missing, dir)
			continue
		}
		s.Interpreter.Include = append(s.Interpreter.Include, dir)
	}
}

// initialized warns of directories of -I that do not exist.
func (s *Server) initialized(ctx context.Context, _ *protocol.InitializedParams) (any, error) {
	for _, dir := range s.missing {
		err := s.conn.Notify(ctx, protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: protocol.MessageTypeWarning, Message: "fabsh: -I " + dir + ": no such directory; scripts cannot load from it"})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
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

// maxRequests is how many messages may wait, and how many requests may have no response yet.
const maxRequests = 1000

var errCancelled = errors.New("the editor has cancelled the request")

// request is a message of the editor: a request, or a notification.
type request struct {
	jsonrpc2.Request
	ctx    context.Context // ends if the editor cancels it, and after its response
	cancel context.CancelCauseFunc
	reply  jsonrpc2.Replier
}

// id returns the ID of a request; isCall: it is not a notification.
func (r *request) id() (id jsonrpc2.ID, isCall bool) {
	if call, ok := r.Request.(*jsonrpc2.Call); ok {
		return call.ID(), true
	}
	return id, false
}

// later is the result of a method that takes longer, and runs while other messages are answered.
// It must not use the server, unless it holds s.mu.
type later func() (any, error)

// receive accepts a message, while an earlier one may be running. It returns no errors: the
// library stores only one kind.
func (s *Server) receive(ctx context.Context, reply jsonrpc2.Replier, req jsonrpc2.Request) error {
	if req.Method() == protocol.MethodCancelRequest {
		s.cancelRequest(req.Params())
		return nil
	}
	r := &request{Request: req, reply: reply}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if err := s.begin(r); err != nil {
		reply(ctx, nil, err)
		return nil
	}
	s.waiting.Add(1)
	if stop := s.checking.Load(); stop != nil {
		(*stop)(errCancelled) // it begins again after the message
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
	}
	return nil
}

// begin records a request until its response.
func (s *Server) begin(r *request) error {
	id, isCall := r.id()
	if !isCall {
		return nil
	}
	s.callsMu.Lock()
	defer s.callsMu.Unlock()
	switch {
	case s.calls[id] != nil:
		return jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "request ID %v is in use; use each ID once", id)
	case len(s.calls) >= maxRequests:
		return jsonrpc2.Errorf(jsonrpc2.InternalError, "busy: %d requests have no response yet; send fewer at a time", maxRequests)
	}
	s.calls[id] = r
	return nil
}

// cancelRequest cancels a request that has no response yet.
func (s *Server) cancelRequest(params json.RawMessage) {
	var p struct{ ID jsonrpc2.ID }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.callsMu.Lock()
	defer s.callsMu.Unlock()
	if r := s.calls[p.ID]; r != nil {
		r.cancel(errCancelled)
	}
}

// work handles messages in their order, until the queue is closed or ctx ends.
func (s *Server) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-s.queue:
			if !ok {
				return
			}
			s.handle(ctx, r)
			if s.waiting.Add(-1) == 0 {
				s.wake() // of a check that was stopped
			}
		}
	}
}

// answer sends the response of a request; a notification has none.
func (s *Server) answer(r *request, result any, err error) {
	if id, isCall := r.id(); isCall {
		s.callsMu.Lock()
		delete(s.calls, id)
		s.callsMu.Unlock()
	}
	if context.Cause(r.ctx) == errCancelled {
		result, err = nil, jsonrpc2.NewError(protocol.CodeRequestCancelled, errCancelled.Error())
	}
	defer r.cancel(nil)
	if err := r.reply(context.WithoutCancel(r.ctx), result, err); err != nil {
		s.end(fmt.Errorf("lsp: %w", err))
	}
}

// finish runs the rest of a request and answers it, at once if the editor cancels it. One such
// request runs at a time.
func (s *Server) finish(r *request, rest later) {
	select {
	case s.slot <- struct{}{}:
	case <-r.ctx.Done():
		s.abandon(r)
		return
	}
	var result any
	var err error
	done := make(chan struct{})
	go func() {
		defer func() { <-s.slot }()
		defer close(done)
		err = lang.Protect("lsp "+r.Method(), func() (err error) { result, err = rest(); return err })
	}()
	select {
	case <-done:
		s.answer(r, result, err)
	case <-r.ctx.Done():
		s.abandon(r)
	}
}

// abandon answers a request that is cancelled, unless the session ends.
func (s *Server) abandon(r *request) {
	if context.Cause(r.ctx) == errCancelled {
		s.answer(r, nil, nil)
	}
}

// Bounds of a message, in bytes.
const (
	maxMessage = 16 << 20 // a document of 1 MiB takes up to 6 MiB in JSON
	maxSkipped = 1 << 30  // a longer one is more likely a wrong length
)

// stream has the messages of an editor, each after a header with its length. Unlike that of the
// library, it answers what is not a message by an error, and reads the next one, as long as the
// header has the length.
type stream struct {
	in     *bufio.Reader
	closer io.Closer

	mu  sync.Mutex // keeps messages whole
	out io.Writer
}

func newStream(in io.ReadCloser, out io.Writer) *stream {
	return &stream{in: bufio.NewReader(in), closer: in, out: out}
}

// errorResponse is the response to what is not a request (JSON-RPC 2.0, section 5.1).
type errorResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null: unknown
	Error   *jsonrpc2.Error `json:"error"`
}

// Read returns the next message.
func (s *stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		length, err := s.header()
		if errors.Is(err, errFraming) { // the next message begins at the next header
			if err = s.refuse(nil, jsonrpc2.ParseError, err.Error()); err == nil {
				err = s.skip()
			}
			if err == nil {
				continue
			}
			return nil, 0, err
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				s.refuse(nil, jsonrpc2.ParseError, err.Error())
			}
			return nil, 0, err
		}
		if length > maxMessage {
			err = s.refuse(nil, jsonrpc2.InvalidRequest, fmt.Sprintf("message of %d bytes, more than %d; send less", length, maxMessage))
			if err == nil {
				_, err = io.CopyN(io.Discard, s.in, length)
			}
			if err != nil {
				return nil, 0, within(err)
			}
			continue
		}
		text := make([]byte, length)
		if _, err := io.ReadFull(s.in, text); err != nil {
			return nil, 0, within(err)
		}
		message, refusal := decode(text)
		if refusal == nil {
			return message, length, nil
		}
		if err := s.write(refusal); err != nil {
			return nil, 0, err
		}
	}
}

// within returns an error of reading within a message.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read message: %w", err)
}

// header reads a header, and returns the length of the message after it.
func (s *stream) header() (length int64, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := s.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("message header: line too long: %w", errFraming)
		case errors.Is(err, io.EOF) && first && len(line) == 0:
			return 0, io.EOF
		case err != nil:
			return 0, within(err)
		}
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		switch {
		case name == "" && length < 0:
			return 0, fmt.Errorf("message header: no Content-Length: %w", errFraming)
		case name == "":
			return length, nil
		case !strings.EqualFold(name, jsonrpc2.HdrContentLength):
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 || n > maxSkipped || length >= 0 && n != length {
			return 0, fmt.Errorf("message header: invalid Content-Length %q: %w", strings.TrimSpace(value), errFraming)
		}
		length = n
	}
}

// errFraming is in the error of a header that does not give the length of its message.
var errFraming = errors.New("skipped until the next Content-Length")

// maxGarbage is how much is skipped to find the next header, in bytes.
const maxGarbage = 64 << 20

// skip reads until the next header.
func (s *stream) skip() error {
	const name = jsonrpc2.HdrContentLength + ":"
	for range maxGarbage {
		begin, err := s.in.Peek(len(name))
		if err != nil {
			return within(err)
		}
		if strings.EqualFold(string(begin), name) {
			return nil
		}
		s.in.Discard(1)
	}
	return fmt.Errorf("no message in %d bytes; restart the server", maxGarbage)
}

// decode returns the message in a text, or its refusal.
func decode(text []byte) (jsonrpc2.Message, *errorResponse) {
	if !json.Valid(text) {
		return nil, refusal(nil, jsonrpc2.ParseError, "malformed JSON")
	}
	var parts struct {
		Version               string `json:"jsonrpc"`
		ID                    json.RawMessage
		Method                *string
		Params, Result, Error json.RawMessage
	}
	err := json.Unmarshal(text, &parts)
	if err != nil || parts.Version != "2.0" || parts.Method == nil && parts.Result == nil && parts.Error == nil || parts.Method != nil && *parts.Method == "" {
		return nil, refusal(parts.ID, jsonrpc2.InvalidRequest, "not a message of JSON-RPC 2.0; batches are not supported")
	}
	message, err := jsonrpc2.DecodeMessage(text)
	if err != nil {
		return nil, refusal(parts.ID, jsonrpc2.InvalidRequest, "not a message of JSON-RPC 2.0: its id is not a string or a 32-bit integer")
	}
	return message, nil
}

func refusal(id json.RawMessage, code jsonrpc2.Code, text string) *errorResponse {
	if len(id) == 0 || strings.ContainsAny(string(id[:1]), "[{tf") {
		id = json.RawMessage("null")
	}
	return &errorResponse{"2.0", id, jsonrpc2.NewError(code, text)}
}

func (s *stream) refuse(id json.RawMessage, code jsonrpc2.Code, text string) error {
	return s.write(refusal(id, code, text))
}

// Write sends a message.
func (s *stream) Write(ctx context.Context, m jsonrpc2.Message) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return 0, s.write(m)
}

func (s *stream) write(m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = fmt.Fprintf(s.out, "%s: %d\r\n\r\n%s", jsonrpc2.HdrContentLength, len(text), text)
	return err
}

// Close closes the input.
func (s *stream) Close() error { return s.closer.Close() }

package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An ID is returned as it came: the SDK keeps strings and integers, in its own notation, and makes
// another ID of a fraction or of an integer that a float64 does not hold.

// maxInteger is the largest integer of which all smaller ones are float64 too.
const maxInteger = 1 << 53

// isID reports whether a text of JSON is a string or an integer up to maxInteger, in any notation
// of JSON: 1, 1.0 or 1e0.
func isID(text json.RawMessage) bool {
	if len(text) > 0 && text[0] == '"' {
		return true
	}
	if !bytes.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(string(text), 10, 64)
		return err == nil && -maxInteger <= n && n <= maxInteger
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return err == nil && f == math.Trunc(f) && math.Abs(f) < maxInteger
}

const wantID = "want a string, or an integer of at most 2^53"

// idOf returns the ID of a message as it came, nil without one, or the refusal of the message: of
// its ID, of the ID of a request that it cancels, or of the token of its progress, which is
// returned too.
func idOf(m jsonrpc.Message, text []byte) (json.RawMessage, *refusal) {
	var members map[string]json.RawMessage
	json.Unmarshal(text, &members) // the SDK has decoded it
	id, hasID := members["id"]
	sdk := jsonrpc.ID{}
	request, isRequest := m.(*jsonrpc.Request)
	if isRequest {
		sdk = request.ID
	} else if r, isResponse := m.(*jsonrpc.Response); isResponse {
		sdk = r.ID
	}
	if hasID || sdk.IsValid() {
		var value any
		json.Unmarshal(id, &value)
		if same, err := jsonrpc.MakeID(value); err != nil || same != sdk || !isID(id) {
			return nil, refusalOf(jsonrpc.CodeInvalidRequest, "id: "+wantID)
		}
	}
	if !isRequest {
		return id, nil
	}
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	json.Unmarshal(request.Params, &params) // what it does not decode, the SDK refuses
	refuse := func(name string) (json.RawMessage, *refusal) {
		r := refusalOf(jsonrpc.CodeInvalidParams, name+": "+wantID)
		if hasID {
			r.ID = id
		}
		return nil, r
	}
	switch {
	case request.Method == "notifications/cancelled" && params.RequestID != nil && !isID(params.RequestID):
		return refuse("requestId")
	case params.Meta.ProgressToken != nil && !isNull(params.Meta.ProgressToken) && !isID(params.Meta.ProgressToken):
		return refuse("progressToken")
	}
	return id, nil
}

func isNull(text json.RawMessage) bool { return string(text) == "null" }

// encodeResponse encodes a response with its ID as it came; nil: as the SDK writes it.
func encodeResponse(r *jsonrpc.Response, id json.RawMessage) ([]byte, error) {
	text, err := jsonrpc.EncodeMessage(r)
	if err != nil || id == nil {
		return text, err
	}
	var whole struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	if bytes.Equal(whole.ID, id) {
		return text, nil
	}
	whole.ID = id
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(whole)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

package mcp

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestIDs: an ID is returned as it came, or its request is refused.
func TestIDs(t *testing.T) {
	for id, refused := range map[string]bool{
		"0": false, "-0": false, "7": false, "-7": false, "1.0": false, "1e3": false, "1E0": false, "10e-1": false,
		"9007199254740992": false, "-9007199254740992": false,
		`""`: false, `"a"`: false, `"\u0041"`: false, `"\ud800"`: false, `"<é>"`: false, `"1"`: false, `"\/"`: false,
		"1.5": true, "-0.1": true, "1e-1": true, "9007199254740993": true, "-9007199254740993": true, "9007199254740993.0": true,
		"18446744073709551617": true, "1e300": true, "1e999": true, "null": true, "true": true, "[1]": true, "{}": true,
	} {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
		var out strings.Builder
		c, err := Stdio(strings.NewReader(line+"\n"), &out).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Read(t.Context())
		if refused {
			if err != io.EOF || !strings.HasPrefix(out.String(), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
				t.Errorf("%s: %v, %v, %s", id, m, err, out.String())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v: %s", id, err, out.String())
			continue
		}
		of := m.(*jsonrpc.Request).ID
		for response, want := range map[*jsonrpc.Response]string{
			{ID: of, Result: []byte(`{"a":"<é>"}`)}:                               `"result":{"a":"<é>"}`,
			{ID: of, Error: &jsonrpc.Error{Code: -32601, Message: "a <unknown>"}}: `"error":{"code":-32601,"message":"a <unknown>"}`,
		} {
			c.(*connection).begin(of, []byte(id))
			out.Reset()
			if err := c.Write(t.Context(), response); err != nil {
				t.Fatal(err)
			}
			if want := `{"jsonrpc":"2.0","id":` + id + "," + want + "}\n"; out.String() != want {
				t.Errorf("got %s, want %s", out.String(), want)
			}
		}
	}
}

// TestOtherIDs: the ID of a request that is cancelled, and a token of progress, are never taken for
// others either.
func TestOtherIDs(t *testing.T) {
	for text, want := range map[string]string{
		`"method":"notifications/cancelled","params":{"requestId":1}`:                        "",
		`"method":"notifications/cancelled","params":{"requestId":"a"}`:                      "",
		`"method":"notifications/cancelled","params":{}`:                                     "",
		`"method":"notifications/cancelled","params":{"requestId":1.5}`:                      `null,"error":{"code":-32602,"message":"requestId: ` + wantID,
		`"id":3,"method":"tools/call","params":{"_meta":{"progressToken":1}}`:                "",
		`"id":3,"method":"tools/call","params":{"_meta":{"progressToken":null}}`:             "",
		`"id":3,"method":"tools/call","params":{"_meta":{"progressToken":9007199254740993}}`: `3,"error":{"code":-32602,"message":"progressToken: ` + wantID,
		`"id":"x","method":"tools/call","params":{"_meta":{"progressToken":[1]}}`:            `"x","error":{"code":-32602,"message":"progressToken: ` + wantID,
		`"id":3,"id":4.5,"method":"ping"`:                                                    `null,"error":{"code":-32600,"message":"id: ` + wantID,
		`"ID":3,"method":"ping"`:                                                             "",
	} {
		_, _, refused := decode(lineOf([]byte(`{"jsonrpc":"2.0",` + text + `}`)))
		got := ""
		if refused != nil {
			c, out := &connection{}, new(strings.Builder)
			c.out = out
			c.writeLine(refused)
			got = strings.TrimPrefix(out.String(), `{"jsonrpc":"2.0","id":`)
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

package routingtest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
)

// Reread is r, tables of f with lanes, as read from the files that it is written to: what made it is unknown.
func Reread(t testing.TB, f *fabric.Fabric, r *routes.Routes) *routes.Routes {
	t.Helper()
	texts := map[string]string{}
	for _, kind := range []format.FormatName{format.KindLFTs, format.KindPathSL, format.KindSL2VL} {
		var b bytes.Buffer
		if err := r.Write(t.Context(), &b, kind); err != nil {
			t.Fatal(err)
		}
		texts[string(kind)] = b.String()
	}
	open := func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(texts[name])), nil }
	back, err := routes.Load(f, routes.Files{LFTs: string(format.KindLFTs), SL: string(format.KindPathSL), SL2VL: string(format.KindSL2VL)}, open)
	if err != nil || len(back.ReadNotes) > 0 {
		t.Fatal(err, back.ReadNotes)
	}
	return back
}

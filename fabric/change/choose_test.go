package change_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric/change"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
)

// TestChooseUnchanged: with a policy's tables by which all packets between hosts take the paths
// in force nothing changes.
func TestChooseUnchanged(t *testing.T) {
	live := swept(t, "fattree:k=4")
	own := computed(t, live.Graph(), "dfsssp", engines.Options{})
	p := change.TargetPolicy{
		Own:     func(context.Context) (*routes.Routes, error) { return own, nil },
		Keeping: func(context.Context) (*routes.Routes, bool, error) { return own, false, nil },
		Live:    live,
		Prove:   func(context.Context, *routes.Routes) (string, error) { return "", nil },
	}
	c, err := p.Choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if entries := c.Tables.Diff(live).Entries; entries != 0 || !c.Proven || len(c.Tables.Notes) != 1 || !strings.HasPrefix(c.Tables.Notes[0], fmt.Sprintf("%d entries stay in force", own.Diff(live).Entries)) {
		t.Errorf("%d entries change; notes %q", entries, c.Tables.Notes)
	}
}

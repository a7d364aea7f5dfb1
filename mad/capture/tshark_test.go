package capture

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestTshark: tshark decodes each packet of a session as the attribute it is.
func TestTshark(t *testing.T) {
	ibsimtest.Path(t, "tshark")
	path := filepath.Join(t.TempDir(), "a.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	e := simEngine(t, f)
	found, err := discover.Sweep(context.Background(), e, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var calls []*engine.Call
	for _, a := range []*mad.Attribute{mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrLinkRecord} {
		c := table(a)
		c.SetLID(1)
		calls = append(calls, c)
	}
	for i := range found.Nodes() {
		c := new(engine.Call)
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, count(64))
		c.SetLID(found.Nodes()[i].LID())
		calls = append(calls, c)
	}
	path1 := new(engine.Call)
	path1.PutSA(mad.MethodGet, mad.AttrPathRecord.ID, 0, 0, nil)
	path1.SetLID(1)
	silent := smp(mad.AttrNodeInfo, 0, 9)
	silent.Timeout, silent.Retries = 10*ms, -1
	if err := e.Do(context.Background(), append(calls, path1, silent)...); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	fields := []string{"frame.number", "erf.flags.cap", "erf.flags.rxe", "infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.bth.destqp", "infiniband.deth.srcqp",
		"infiniband.mad.mgmtclass", "infiniband.mad.method", "infiniband.mad.attributeid", "infiniband.mad.attributemodifier", "infiniband.mad.transactionid", "_ws.malformed"}
	args := []string{"-r", path, "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := ibsimtest.Command(t, "tshark", args...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	recording, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, p := range packets(t, recording) {
		h := mad.ParseHeader(p.Payload)
		failed := 0
		if p.Error {
			failed = 1
		}
		want = append(want, fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t0x%06x\t0x%08x\t0x%02x\t0x%02x\t0x%04x\t0x%08x\t0x%016x\t",
			i+1, p.Interface, failed, p.SLID, p.DLID, p.DestQP, p.SrcQP, uint8(h.Class), uint8(h.Method), uint16(h.Attribute), h.Modifier, h.TID))
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i := range got {
		got[i] = strings.NewReplacer("True", "1", "False", "0").Replace(got[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +tshark\n%.4000s", diff)
	}
}

// simEngine is on a simulated subnet, and recorded in w.
func simEngine(t *testing.T, w io.WriteCloser) *engine.Engine {
	t.Helper()
	f, o, err := sim.Parse("fattree:k=4,levels=3")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if tr, err = Record(tr, w); err != nil {
		t.Fatal(err)
	}
	e := engine.New(tr, engine.Options{Write: true})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

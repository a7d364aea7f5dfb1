package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim/ibsimtest"
)

// simulatedSubnet is a simulated subnet of the given spec, for its first CA.
func simulatedSubnet(t *testing.T, spec string) engine.Transport {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// multi asks for the path from p to itself n times.
func multi(p engine.Port, n int) *engine.Call {
	self := mad.MakeGID(p.GIDPrefix, p.PortGUID)
	record := mad.MultiPathRecord{SGIDCount: 1, DGIDCount: uint8(n)}
	var b [200]byte
	record.Encode(b[:])
	a := mad.AttrMultiPathRecord
	c := &engine.Call{Payload: b[:a.Field("sdgid").Offset/8]}
	for range 1 + n {
		c.Payload = append(c.Payload, self[:]...)
	}
	c.PutSA(mad.MethodGetMulti, a.ID, 0, a.Field("sgid_count").Mask()|a.Field("dgid_count").Mask(), nil)
	c.SetLID(p.SMLID)
	return c
}

// recordLongRequests records requests of one, some and many segments.
func recordLongRequests(t *testing.T, spec string) (recording []byte, results []result) {
	synctest.Test(t, func(t *testing.T) {
		recording = record(t, simulatedSubnet(t, spec), engine.Options{Retries: 10}, func(e *engine.Engine) {
			port, err := e.Port()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 11, 12, 100} {
				results = append(results, do(t, e, multi(port, n))...)
			}
			synctest.Wait()
		})
	})
	return recording, results
}

// TestLongRequest: a recording of requests of many segments answers them.
func TestLongRequest(t *testing.T) {
	for _, faults := range []string{"", ",delay=2ms", ",delay=2ms,jitter=5ms", ",loss=0.1,delay=1ms", ",dup=0.3,delay=1ms"} {
		t.Run(faults, func(t *testing.T) {
			recording, want := recordLongRequests(t, "fattree:k=4,levels=2"+faults)
			for i, n := range []int{1, 11, 12, 100} {
				if want[i].Err != "" || len(want[i].Table) != n*mad.AttrPathRecord.Size {
					t.Fatalf("%d destinations: %d bytes, %s", n, len(want[i].Table), want[i].Err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				play(t, recording, engine.Options{}, func(e *engine.Engine) {
					port, err := e.Port()
					if err != nil {
						t.Fatal(err)
					}
					for i, n := range []int{1, 11, 12, 100} {
						got := do(t, e, multi(port, n))[0]
						if got.Err != "" || got.Table != want[i].Table || got.MAD != want[i].MAD {
							t.Errorf("%d destinations: %d bytes, %s", n, len(got.Table), got.Err)
						}
					}
					const unknown = "SubnAdmGetMulti(MultiPathRecord) to LID 7: not in the recording a.pcap"
					if got := do(t, e, multi(port, 99))[0]; got.Err != unknown {
						t.Errorf("got  %s\nwant %s", got.Err, unknown)
					}
				})
			})
		})
	}
}

// TestLongRequestWhole: where the transport cuts the request, its segments are
// recorded all the same.
func TestLongRequestWhole(t *testing.T) {
	for _, n := range []int{0, 8, 200, 201, 1000} {
		synctest.Test(t, func(t *testing.T) {
			want := count(n)
			get := func() *engine.Call {
				c := &engine.Call{Payload: want}
				c.PutSA(mad.MethodGetMulti, mad.AttrMultiPathRecord.ID, 0, 0, nil)
				c.SetLID(3)
				return c
			}
			recording := record(t, newPeer(engine.Traits{RMPP: true}, func(p *peer, d engine.Datagram, nth int) {
				p.after(ms, segments(d, count(8))[0])
			}), engine.Options{}, func(e *engine.Engine) { do(t, e, get()) })
			var joined []byte
			for _, p := range packets(t, recording) {
				if s := segmentOf(p.Payload); p.Interface == ifaceSent && s != nil {
					size := mad.SegmentData
					if s.RMPPFlags&mad.RMPPFlagsLast != 0 {
						size = int(s.PayloadLength) - mad.SegmentHeader
					}
					joined = append(joined, p.Payload[mad.SADataOffset:][:size]...)
				}
			}
			if !bytes.Equal(joined, want) {
				t.Errorf("%d bytes: %d were recorded, or others", n, len(joined))
			}
			play(t, recording, engine.Options{}, func(e *engine.Engine) {
				if r := do(t, e, get())[0]; r.Err != "" {
					t.Errorf("%d bytes: %s", n, r.Err)
				}
			})
		})
	}
}

// TestLongRequestTshark: tshark sees in a transfer both ways what we put there.
func TestLongRequestTshark(t *testing.T) {
	ibsimtest.Path(t, "tshark")
	recording, _ := recordLongRequests(t, "fattree:k=4,levels=2,loss=0.1,delay=1ms")
	path := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(path, recording, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", path, "-Y", "infiniband.rmpp.rmpptype > 0", "-T", "fields"}
	for _, f := range []string{"frame.number", "infiniband.mad.method", "infiniband.rmpp.rmppversion", "infiniband.rmpp.rmpptype", "infiniband.rmpp.rresptime", "infiniband.rmpp.rmppflags",
		"infiniband.rmpp.rmppstatus", "infiniband.rmpp.segmentnumber", "infiniband.rmpp.payloadlength", "infiniband.rmpp.newwindowlast", "infiniband.rmpp.transferreddata"} {
		args = append(args, "-e", f)
	}
	cmd := ibsimtest.Command(t, "tshark", args...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	kinds := map[mad.RMPPType]int{}
	for i, p := range packets(t, recording) {
		s := segmentOf(p.Payload)
		if s == nil {
			continue
		}
		kinds[s.RMPPType]++
		length, window, data := "", "", ""
		if s.RMPPType == mad.RMPPTypeData {
			length, data = fmt.Sprintf("0x%08x", s.PayloadLength), fmt.Sprintf("%x", p.Payload[mad.SAKeyOffset:])
		} else {
			window = fmt.Sprintf("0x%08x", s.PayloadLength)
		}
		// tshark takes 4 bits for the time and 4 for the flags; they are 5 and 3
		// (IBA 13.6.2.1; opensm ib_types.h, ib_rmpp_mad_t).
		both := p.Payload[mad.RMPPOffset+2]
		want = append(want, fmt.Sprintf("%d\t0x%02x\t0x%02x\t0x%02x\t0x%02x\t0x%02x\t0x%02x\t0x%08x\t%s\t%s\t%s",
			i+1, uint8(mad.ParseHeader(p.Payload).Method), s.RMPPVersion, uint8(s.RMPPType), both>>4, both&0xf, uint8(s.RMPPStatus), s.SegmentNumber, length, window, data))
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +tshark\n%.4000s", diff)
	}
	if kinds[mad.RMPPTypeData] < 20 || kinds[mad.RMPPTypeACK] < 10 {
		t.Errorf("too few segments to tell: %v", kinds)
	}
}

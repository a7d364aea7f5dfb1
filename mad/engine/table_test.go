package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestTableErrors: whatever is wrong with a table, the call ends with an
// error that says so, and never with fewer records.
func TestTableErrors(t *testing.T) {
	const timedOut = ": timed out after 1 attempt in 1s"
	put32 := func(m []byte, at int, v uint32) { binary.BigEndian.PutUint32(m[at:], v) }
	for _, test := range []struct {
		name   string
		size   int
		traits Traits
		change func(s []Datagram) []Datagram
		err    string
		abort  mad.RMPPStatus // status of the ABORT we send; 0: none
	}{
		{name: "aborted", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[mad.RMPPTypeOffset], s[2].MAD[mad.RMPPStatusOffset] = byte(mad.RMPPTypeAbort), 126
			return s[:3]
		}, err: "the sender aborted the table: RMPP status 126, too many retries: datagrams are lost; check the links of the path for errors, or retry"},
		{name: "stopped", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[mad.RMPPTypeOffset], s[0].MAD[mad.RMPPStatusOffset] = byte(mad.RMPPTypeStop), 1
			return s[:1]
		}, err: "the sender stopped the table: RMPP status 1, resources exhausted: retry later, or request less at once"},
		{name: "unknown status", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[mad.RMPPTypeOffset], s[0].MAD[mad.RMPPStatusOffset] = byte(mad.RMPPTypeAbort), 77
			return s[:1]
		}, err: "the sender aborted the table: RMPP status 77, unknown: retry"},
		{name: "end missing", size: 1000, change: func(s []Datagram) []Datagram { return s[:3] },
			err: "table incomplete, segment 4" + timedOut, abort: mad.RMPPStatusTotalTimeTooLong},
		{name: "middle missing", size: 1000, change: func(s []Datagram) []Datagram { return append(s[:2], s[3:]...) },
			err: "table incomplete, segment 3" + timedOut, abort: mad.RMPPStatusTotalTimeTooLong},
		{name: "first missing", size: 1000, change: func(s []Datagram) []Datagram { return s[1:] },
			err: "table incomplete, segment 1" + timedOut, abort: mad.RMPPStatusTotalTimeTooLong},
		{name: "last too early", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsLast)
			put32(s[2].MAD, mad.PayloadLengthOffset, 220)
			return s[:3]
		}, err: "malformed table: 660 bytes at most have come, of 1100 that the first segment announced", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "more after the last", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsLast)
			put32(s[2].MAD, mad.PayloadLengthOffset, 220)
			return []Datagram{s[0], s[1], s[3], s[2]}
		}, err: "malformed table: segment 3 is the last, but there are later ones", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "beyond the last", size: 1000, change: func(s []Datagram) []Datagram {
			s[3].MAD[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsLast)
			put32(s[3].MAD, mad.PayloadLengthOffset, 220)
			return []Datagram{s[0], s[3], s[4]}
		}, err: "malformed table: segment 5, but the last was 4", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "last segment of 201 bytes", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[4].MAD, mad.PayloadLengthOffset, 221)
			return s
		}, err: "malformed table: last segment with payload length 221", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "last segment of -1 bytes", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[4].MAD, mad.PayloadLengthOffset, 19)
			return s
		}, err: "malformed table: last segment with payload length 19", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "announces 4 GB", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, mad.PayloadLengthOffset, 0xffffffff)
			return s
		}, err: "malformed table: 1100 bytes at most have come, of 4294967295 that the first segment announced", abort: mad.RMPPStatusInconsistentLastAndPayloadLength},
		{name: "announces nothing", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, mad.PayloadLengthOffset, 0)
			return s
		}},
		{name: "announces data alone", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, mad.PayloadLengthOffset, 1000)
			return s
		}},
		{name: "segment 0", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[1].MAD, mad.SegmentNumberOffset, 0)
			return s
		}, err: "malformed table: segment number 0 does not go with the flag of the first segment", abort: mad.RMPPStatusInconsistentFirstAndSegmentNumber},
		{name: "two first segments", size: 1000, change: func(s []Datagram) []Datagram {
			s[1].MAD[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsFirst)
			return s
		}, err: "malformed table: segment number 2 does not go with the flag of the first segment", abort: mad.RMPPStatusInconsistentFirstAndSegmentNumber},
		{name: "segment far ahead", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[1].MAD, mad.SegmentNumberOffset, 0xffffffff)
			return s
		}, err: "table incomplete, segment 2" + timedOut, abort: mad.RMPPStatusTotalTimeTooLong},
		{name: "version 2", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[mad.RMPPVersionOffset] = 2
			return s
		}, err: "malformed table: RMPP version 2", abort: 125},
		{name: "status of a segment", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[mad.RMPPStatusOffset] = 1
			return s
		}, err: "malformed table: segment 1 has RMPP status 1", abort: 124},
		{name: "reversed", size: 1000, change: func(s []Datagram) []Datagram {
			slices.Reverse(s)
			return s
		}},
		{name: "cut segment", size: 400, change: func(s []Datagram) []Datagram {
			s[1].Cut = true
			return s
		}, err: ErrCut.Error(), abort: mad.RMPPStatusUnspecified},
		{name: "cut in a middle segment", size: 600, change: func(s []Datagram) []Datagram {
			s[1].Cut = true
			return s
		}, err: ErrCut.Error(), abort: mad.RMPPStatusUnspecified},
		{name: "no records", size: 0, change: func(s []Datagram) []Datagram {
			return []Datagram{withStatus(s[0], mad.StatusNoRecords)}
		}, err: "no records (status 0x0300)"},
		{name: "whole, not segmented, short", size: 100, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[mad.RMPPOffset : mad.RMPPOffset+12])
			s[0].MAD = s[0].MAD[:mad.SADataOffset+100]
			return s
		}},
		{name: "not segmented, of unknown length", size: 100, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[mad.RMPPOffset : mad.RMPPOffset+12])
			return s
		}, err: "malformed table: it does not say how long it is"},
		{name: "not segmented, cut", size: 1000, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[mad.RMPPOffset : mad.RMPPOffset+12])
			s[0].MAD[mad.RMPPFlagsOffset] = byte(mad.RMPPFlagsActive) // OpenSM on ibsim's client library
			s[0].Cut = true
			return s[:1]
		}, err: ErrCut.Error()},
		{name: "put together by the kernel", size: 1000, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram {
			for _, next := range s[1:] {
				s[0].MAD = append(s[0].MAD, next.MAD[mad.SADataOffset:]...)
			}
			return s[:1]
		}},
		{name: "one segment by the kernel", size: 104, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram { return s }},
		{name: "one segment by the kernel, bad length", size: 0, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, mad.PayloadLengthOffset, 3)
			return s
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := randomTable(rand.New(rand.NewPCG(4, 0)), test.size)
				var aborts []mad.RMPPStatus
				var first []byte
				f := newFake(func(f *fakeTransport, d Datagram) {
					if isControl(d.MAD) {
						if rmppTypeOf(d.MAD) == mad.RMPPTypeAbort {
							aborts = append(aborts, rmppHeaderOf(d.MAD).RMPPStatus)
						}
						return
					}
					segments := segmentsOf(d, want, 4)
					first = segments[0].MAD
					for _, s := range test.change(segments) {
						f.deliver(s)
					}
				})
				f.traits = test.traits
				e := New(f, Options{Retries: -1})
				defer mustClose(t, e)
				c := getTable(1)
				e.Do(t.Context(), c)
				synctest.Wait()
				if test.err == "" {
					if c.Err != nil || c.Table == nil || !bytes.Equal(c.Table, want) {
						t.Errorf("%v, %d bytes of %d", c.Err, len(c.Table), len(want))
					}
					if !bytes.HasPrefix(first, c.MAD[:min(len(first), mad.Size)]) {
						t.Error("MAD is not the first segment")
					}
				} else if c.Err == nil || c.Err.Error() != "SubnAdmGetTable(NodeRecord) to LID 1: "+test.err {
					t.Errorf("error\n got %v\nwant SubnAdmGetTable(NodeRecord) to LID 1: %s", c.Err, test.err)
				} else if c.Table != nil {
					t.Errorf("%d bytes beside an error", len(c.Table))
				}
				wantAborts := []mad.RMPPStatus(nil)
				if test.abort != 0 {
					wantAborts = []mad.RMPPStatus{test.abort}
				}
				if len(aborts) > 0 && test.abort != 0 { // later segments may call for more
					aborts = aborts[:1]
				}
				if diff := cmp.Diff(wantAborts, aborts); diff != "" {
					t.Errorf("ABORTs sent (-want +got):\n%s", diff)
				}
				checkEmpty(t, e)
			})
		})
	}
}

// TestRecords: the table is a whole number of records, or there is an error.
// TestLongTable: a table that a kernel puts together may take longer than an
// attempt; the timeout for the kernel says so.
func TestLongTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timeouts []time.Duration
		f := newFake(func(f *fakeTransport, d Datagram) {
			timeouts = append(timeouts, d.Timeout)
			answer := respond(d)
			answer.MAD = append(answer.MAD, make([]byte, 1000)...)
			time.AfterFunc(2500*time.Millisecond, func() { f.deliver(answer) })
		})
		f.traits.RMPP = true
		e := New(f, Options{})
		defer mustClose(t, e)
		c := new(Call)
		c.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, 0, 0, nil)
		c.SetLID(1)
		e.Do(t.Context(), c)
		if c.Err != nil || len(c.Table) != mad.SegmentData+1000 || c.Elapsed != 2500*time.Millisecond {
			t.Errorf("%d bytes after %v, %v", len(c.Table), c.Elapsed, c.Err)
		}
		if diff := cmp.Diff([]time.Duration{3 * time.Second, 2 * time.Second, time.Second}, timeouts); diff != "" {
			t.Errorf("timeouts (-want +got)\n%s", diff)
		}
	})
}

func TestRecords(t *testing.T) {
	for _, test := range []struct {
		table, units, size int
		want               []int // lengths
		err                string
	}{
		{table: 0, units: 0, size: 108},
		{table: 112, units: 14, size: 108, want: []int{112}},
		{table: 224, units: 14, size: 108, want: []int{112, 112}},
		{table: 220, units: 14, size: 108, want: []int{112, 108}},
		{table: 219, units: 14, size: 108, err: "malformed table: 219 bytes are not a whole number of records 112 bytes apart"},
		{table: 112, units: 13, size: 108, err: "malformed table: records 104 bytes apart, but at least 108 bytes long"},
		{table: 112, units: 0, size: 108, err: "malformed table: records 0 bytes apart, but at least 108 bytes long"},
		{table: 112, units: 0, size: 0, err: "malformed table: records 0 bytes apart, but at least 0 bytes long"},
		{table: -1, units: 0, size: 108, want: []int{108}},
		{table: -1, units: 0, size: 1000, want: []int{200}},
	} {
		c := getTable(1)
		binary.BigEndian.PutUint16(c.MAD[mad.SAAttrOffsetOffset:], uint16(test.units))
		if test.table >= 0 {
			c.Table = make([]byte, test.table)
		}
		records, err := c.Records(test.size)
		var got []int
		text := ""
		if err != nil {
			text = errors.Unwrap(err).Error()
		} else {
			for r := range records {
				got = append(got, len(r))
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || text != test.err {
			t.Errorf("%+v: %q (-want +got):\n%s", test, text, diff)
		}
	}
	c := getTable(1)
	c.Err = ErrCut
	if _, err := c.Records(8); err != ErrCut {
		t.Errorf("of a failed call: %v", err)
	}
}

// TestTableOfVersion1: a table of class version 1 says in its own header how long
// it is and how far its records are apart; one of several datagrams is joined, from the first on.
func TestTableOfVersion1(t *testing.T) {
	const first, last, whole = mad.FragmentFlagFirst, mad.FragmentFlagLast, mad.FragmentFlagFirst | mad.FragmentFlagLast
	type part struct {
		flag            mad.FragmentFlag
		number, payload uint32
	}
	for name, tt := range map[string]struct {
		parts   []part
		records int
		err     string
	}{
		"one":            {[]part{{whole, 0, 24}}, 3, ""},
		"none":           {[]part{{whole, 0, 0}}, 0, ""},
		"too long":       {[]part{{whole, 0, 1 << 31}}, 24, ""},
		"three":          {[]part{{first, 1, 400}, {0, 2, 192}, {last, 3, 16}}, 50, ""},
		"short":          {[]part{{first, 1, 1 << 30}, {last, 2, 8}}, 25, ""},
		"again":          {[]part{{first, 1, 400}, {first, 1, 200}, {last, 2, 8}}, 25, ""},
		"one after part": {[]part{{first, 1, 400}, {whole, 0, 24}}, 3, ""},
		"no end":         {[]part{{first, 1, 400}}, 0, "timed out"},
		"no beginning":   {[]part{{0, 2, 24}, {last, 3, 24}}, 0, "timed out"},
		"a gap":          {[]part{{first, 1, 400}, {last, 3, 16}}, 0, "timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					for _, p := range tt.parts {
						answer := respond(d)
						answer.MAD = slices.Clone(answer.MAD)
						(&mad.SA1Header{FragmentFlag: p.flag, SegmentNumber: p.number, PayloadLength: p.payload, AttributeOffset: 1}).Encode(answer.MAD[mad.RMPPOffset:])
						f.deliver(answer)
					}
				}), Options{})
				defer mustClose(t, e)
				c := new(Call)
				c.PutMAD(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 1, Method: mad.MethodGetTable, Attribute: mad.AttrLinkRecord.ID}, nil)
				c.SetLID(1)
				e.Do(t.Context(), c)
				if tt.err != "" {
					if c.Err == nil || errors.Unwrap(c.Err).Error() != tt.err {
						t.Errorf("%v", c.Err)
					}
					return
				}
				records, err := c.Records(8)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(slices.Collect(records)); n != tt.records {
					t.Errorf("%d records, want %d", n, tt.records)
				}
			})
		})
	}
}
